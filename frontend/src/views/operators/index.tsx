import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'operators',
  title: 'Operators',
  icon: 'operators',
  order: 30,
  key: 'p',
  dependsOn: ['operators'],
  isFiltered: true,
  keys: [
    ['↑ ↓ ← →', 'Move between rows and cells'],
    ['Enter', 'Show the details of the row'],
    ['Ctrl C', 'Copy the row or cell'],
    ['Alt ← →', 'Resize the column with the focused header'],
  ],
  Page: lazy(() => import('./page')),
};
