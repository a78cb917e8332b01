import { lazy } from 'react';
import { withoutDevice } from '../../core/recorded_parts';
import { TABLE_KEYS, type View } from '../view';

export const view: View = {
  id: 'kernels',
  title: 'Kernels',
  icon: 'kernels',
  order: 40,
  key: 'k',
  dependsOn: ['kernels'],
  isFiltered: true,
  missing: (_, report) => withoutDevice(report),
  keys: TABLE_KEYS,
  Page: lazy(() => import('./page')),
};
