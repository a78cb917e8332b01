import { lazy } from 'react';
import { TABLE_KEYS, type View } from '../view';

export const view: View = {
  id: 'operators',
  title: 'Operators',
  icon: 'operators',
  order: 30,
  key: 'p',
  dependsOn: ['operators'],
  isFiltered: true,
  keys: TABLE_KEYS,
  Page: lazy(() => import('./page')),
};
