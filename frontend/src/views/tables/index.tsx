import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'tables',
  title: 'Tables',
  icon: 'columns',
  order: 68,
  key: 'b',
  restsOn: [],
  narrows: true,
  keys: [
    ['↑ ↓ ← →', 'From row to row, from cell to cell'],
    ['Enter', 'Everything about the row'],
    ['Ctrl C', 'Copy the row or cell'],
  ],
  Page: lazy(() => import('./page')),
};
