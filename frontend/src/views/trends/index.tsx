import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'trends',
  title: 'Trends',
  icon: 'trends',
  order: 85,
  key: 'n',
  scope: 'runs',
  dependsOn: [],
  Page: lazy(() => import('./page')),
};
