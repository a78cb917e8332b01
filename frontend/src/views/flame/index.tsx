import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'flame',
  title: 'Flame graph',
  icon: 'flame',
  order: 45,
  key: 'f',
  dependsOn: ['operators', 'kernels'],
  scope: 'trace',
  isFiltered: true,
  keys: [
    ['arrows', 'Move to the caller, the callee, the neighbour'],
    ['n p', 'The next search match, the previous'],
    ['Enter', 'Zoom in to the frame'],
    ['Escape', 'Zoom out by one frame'],
    ['Home', 'Zoom out to all frames'],
  ],
  Page: lazy(() => import('./page')),
};
