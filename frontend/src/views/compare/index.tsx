import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'compare',
  title: 'Compare',
  icon: 'compare',
  order: 80,
  key: 'c',
  scope: 'run',
  dependsOn: ['step breakdown', 'device use', 'idle causes'],
  Page: lazy(() => import('./page')),
};
