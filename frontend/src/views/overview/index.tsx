import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'overview',
  title: 'Overview',
  icon: 'overview',
  order: 20,
  key: 'o',
  needs: 'recording',
  Page: lazy(() => import('./page')),
};
