import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'distributed',
  title: 'Distributed',
  icon: 'distributed',
  order: 70,
  key: 'd',
  dependsOn: ['comparison of ranks', 'step breakdown'],
  scope: 'run',
  isFiltered: 'step',
  missing: ({ run }) => (run.workers.length < 2 ? 'Only one rank of this run was recorded.' : null),
  keys: [
    ['← ↑ → ↓', 'Move between ranks and steps in the heat map'],
    ['Enter', 'Choose the rank and the step'],
    ['+ / − / 0', 'Fewer ranks in the heat map, more, all'],
  ],
  Page: lazy(() => import('./page')),
};
