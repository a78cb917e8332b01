import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'health',
  title: 'Health',
  icon: 'health',
  order: 65,
  key: 'h',
  dependsOn: [],
  mark: ({ span }) => span.damage,
  Page: lazy(() => import('./page')),
};
