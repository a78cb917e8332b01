import { lazy } from 'react';
import { lacking } from '../../core/recorded_parts';
import type { View } from '../view';

export const view: View = {
  id: 'modules',
  title: 'Modules',
  icon: 'modules',
  order: 50,
  key: 'm',
  dependsOn: ['operators'],
  isFiltered: true,
  missing: (_, report) => lacking(report, 'modules'),
  keys: [
    ['← / →', 'Close or open a module'],
    ['Shift + → / ←', 'Open or close all below it'],
    ['Enter', 'Show the work of the module'],
  ],
  Page: lazy(() => import('./page')),
};
