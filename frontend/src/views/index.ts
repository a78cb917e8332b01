import type { View } from './view';

const modules = import.meta.glob<{ readonly view: View }>('./*/index.tsx', { eager: true });

/** Views by folder, for the test that compares folders with ids. */
export const viewsByFolder: Readonly<Record<string, View>> = Object.fromEntries(
  Object.entries(modules).map(([path, module]) => [path.split('/')[1], module.view]),
);

/** All views in order; each folder with an `index.tsx` is a view. */
export const views: readonly View[] = Object.values(viewsByFolder).sort(
  (a, b) => a.order - b.order,
);
