import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'kernels',
  title: 'Kernels',
  icon: 'kernels',
  order: 40,
  key: 'k',
  restsOn: ['kernels'],
  Page: lazy(() => import('./page')),
};
