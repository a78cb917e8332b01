import { lazy } from 'react';
import type { View } from '../view';

export const view: View = {
  id: 'operators',
  title: 'Operators',
  icon: 'operators',
  order: 30,
  key: 'p',
  needs: 'recording',
  Page: lazy(() => import('./page')),
};
