import { lazy } from 'react';
import { lacking } from '../../core/recorded_parts';
import type { View } from '../view';

export const view: View = {
  id: 'memory',
  title: 'Memory',
  icon: 'memory',
  order: 60,
  key: 'y',
  dependsOn: ['memory'],
  isFiltered: true,
  missing: (_, report) => lacking(report, 'memory'),
  keys: [
    ['← / →', 'Move along the curve'],
    ['Shift + ← / →', 'Select a time range on the curve'],
    ['Enter', 'Show the allocated memory of that moment'],
    ['Esc', 'Clear the selected time'],
  ],
  Page: lazy(() => import('./page')),
};
