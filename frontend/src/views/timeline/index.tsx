import { lazyPage } from '../lazy_page';
import type { View } from '../view';

export const view: View = {
  id: 'timeline',
  title: 'Timeline',
  icon: 'timeline',
  order: 25,
  key: 't',
  dependsOn: ['idle causes'],
  scope: 'trace',
  isFiltered: true,
  keys: [
    ['w s, Ctrl + wheel, pinch', 'Zoom in, zoom out'],
    ['Drag', 'Select an area: a time range of some tracks'],
    ['Space + drag, middle button, Shift + drag', 'Pan the view'],
    ['a d, Shift + wheel', 'Pan left, pan right'],
    ['← → ↑ ↓', 'The previous slice, the next, the one above, below'],
    ['f', 'Zoom to the selected area or slice'],
    ['Double click', 'Zoom to the slice at the pointer'],
    ['0', 'Zoom to the whole trace'],
    ['[ ]', 'The previous linked slice, the next: launch, kernel, backward'],
    ['n p', 'The next search result, the previous'],
    ['Enter, Shift + Enter in the search', 'The same'],
    ['m', 'Mark the time at the pointer, or remove the mark'],
    ['Drag in the ruler', 'Filter all views to a time range'],
    ['Enter', 'Focus the details of the selected slice'],
    ['Tab on a track', 'Its buttons: list its slices, pin it, hide it'],
    ['Alt + ↑ ↓ on a track', 'Move the track'],
  ],
  Page: lazyPage(() => import('./page')),
};
