import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'trends',
  title: 'Trends',
  icon: 'trends',
  order: 85,
  key: 'n',
  about: 'runs',
  restsOn: [],
  Page: lazy(() => import('./page')),
};
