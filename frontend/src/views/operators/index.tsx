import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'operators',
  title: 'Operators',
  icon: 'operators',
  order: 30,
  key: 'p',
  restsOn: ['operators'],
  Page: lazy(() => import('./page')),
};
