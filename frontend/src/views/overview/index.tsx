import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'overview',
  title: 'Overview',
  icon: 'overview',
  order: 20,
  key: 'o',
  isFiltered: true,
  dependsOn: ['step breakdown', 'device use', 'idle causes', 'memory'],
  Page: lazy(() => import('./page')),
};
