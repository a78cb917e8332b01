import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'whatif',
  title: 'What if',
  icon: 'sliders',
  order: 22,
  key: 'w',
  dependsOn: ['verdict'],
  Page: lazy(() => import('./page')),
};
