import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'tables',
  title: 'Tables',
  icon: 'columns',
  order: 68,
  key: 'b',
  dependsOn: [],
  isFiltered: true,
  keys: [
    ['↑ ↓ ← →', 'Move between rows and cells'],
    ['Enter', 'Show the details of the row'],
    ['Ctrl C', 'Copy the row or cell'],
  ],
  Page: lazy(() => import('./page')),
};
