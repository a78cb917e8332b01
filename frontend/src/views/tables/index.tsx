import { lazy } from 'react';
import { TABLE_KEYS, type View } from '../view';

export const view: View = {
  id: 'tables',
  title: 'Tables',
  icon: 'columns',
  order: 68,
  key: 'b',
  dependsOn: [],
  isFiltered: true,
  keys: [
    ...TABLE_KEYS,
    ['Ctrl Enter', 'Run the query'],
    ['Ctrl Space', 'Suggest names in the query'],
  ],
  Page: lazy(() => import('./page')),
};
