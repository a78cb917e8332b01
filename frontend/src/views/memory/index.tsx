import { lazy } from 'react';
import { lacking } from '../../core/recorded_parts';
import type { View } from '../view';

export const view: View = {
  id: 'memory',
  title: 'Memory',
  icon: 'memory',
  order: 60,
  key: 'y',
  restsOn: ['memory'],
  narrows: true,
  missing: (_, report) => lacking(report, 'memory'),
  keys: [
    ['← / →', 'Along the curve'],
    ['Shift + ← / →', 'Choose a time on the curve'],
    ['Enter', 'Who held the memory at that moment'],
    ['Esc', 'The whole recording again'],
  ],
  Page: lazy(() => import('./page')),
};
