import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'flame',
  title: 'Flame graph',
  icon: 'flame',
  order: 45,
  key: 'f',
  restsOn: ['operators', 'kernels'],
  about: 'recording',
  narrows: true,
  keys: [
    ['arrows', 'Go to the caller, to what is called, to the neighbour'],
    ['n p', 'The next match of the search, the one before'],
    ['Enter', 'Fill the picture with the frame'],
    ['Escape', 'Back out by one frame'],
    ['Home', 'Show all'],
  ],
  Page: lazy(() => import('./page')),
};
