import { lazy } from 'react';
import { withoutDevice } from '../../core/recorded_parts';
import type { View } from '../view';

export const view: View = {
  id: 'kernels',
  title: 'Kernels',
  icon: 'kernels',
  order: 40,
  key: 'k',
  restsOn: ['kernels'],
  narrows: true,
  missing: (_, report) => withoutDevice(report),
  keys: [
    ['↑ ↓ ← →', 'From row to row, from cell to cell'],
    ['Enter', 'Everything about the row'],
    ['Ctrl C', 'Copy the row or cell'],
    ['Alt ← →', 'Width of the column whose head has the focus'],
  ],
  Page: lazy(() => import('./page')),
};
