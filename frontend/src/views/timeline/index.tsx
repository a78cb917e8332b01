import { lazyPage } from '../lazy_page';
import type { View } from '../view';

export const view: View = {
  id: 'timeline',
  title: 'Timeline',
  icon: 'timeline',
  order: 25,
  key: 't',
  restsOn: ['idle causes'],
  about: 'recording',
  narrows: true,
  keys: [
    ['w s, Ctrl + wheel, pinch', 'Come nearer, go away'],
    ['a d, Shift + wheel, drag', 'Move to the left, to the right'],
    ['← → ↑ ↓', 'The previous slice, the next, the one above, below'],
    ['f, double click', 'Fit the selected slice'],
    ['0', 'The whole recording'],
    ['[ ]', 'The previous linked slice, the next: launch, kernel, backward'],
    ['n p', 'The next hit of the search, the one before'],
    ['Enter, Shift + Enter in the search', 'The same'],
    ['m', 'Mark the time at the pointer, or take the mark away'],
    ['Shift + drag', 'Sum up an area'],
    ['Drag in the ruler', 'Narrow all views to a time'],
    ['Enter', 'To the details of the selected slice'],
    ['Alt + ↑ ↓ on a track', 'Move the track'],
  ],
  Page: lazyPage(() => import('./page')),
};
