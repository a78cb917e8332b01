import { lazy } from 'react';
import { withoutDevice } from '../../core/recorded_parts';
import type { View } from '../view';

export const view: View = {
  id: 'kernels',
  title: 'Kernels',
  icon: 'kernels',
  order: 40,
  key: 'k',
  dependsOn: ['kernels'],
  isFiltered: true,
  missing: (_, report) => withoutDevice(report),
  keys: [
    ['↑ ↓ ← →', 'Move between rows and cells'],
    ['Enter', 'Show the details of the row'],
    ['Ctrl C', 'Copy the row or cell'],
    ['Alt ← →', 'Resize the column with the focused header'],
  ],
  Page: lazy(() => import('./page')),
};
