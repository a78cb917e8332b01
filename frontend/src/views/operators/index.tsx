import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'operators',
  title: 'Operators',
  icon: 'operators',
  order: 30,
  key: 'p',
  restsOn: ['operators'],
  narrows: true,
  keys: [
    ['↑ ↓ ← →', 'From row to row, from cell to cell'],
    ['Enter', 'Everything about the row'],
    ['Ctrl C', 'Copy the row or cell'],
    ['Alt ← →', 'Width of the column whose head has the focus'],
  ],
  Page: lazy(() => import('./page')),
};
