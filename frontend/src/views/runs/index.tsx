import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'runs',
  title: 'Runs',
  icon: 'runs',
  order: 90,
  key: 'r',
  scope: 'runs',
  dependsOn: [],
  Page: lazy(() => import('./page')),
};
