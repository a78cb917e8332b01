import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'advice',
  title: 'Advice',
  icon: 'advice',
  order: 10,
  key: 'a',
  dependsOn: ['verdict'],
  dependsOnRun: true,
  Page: lazy(() => import('./page')),
};
