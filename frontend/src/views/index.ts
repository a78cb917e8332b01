import type { View } from './view';

const found = import.meta.glob<{ readonly view: View }>('./*/index.tsx', { eager: true });

/** Folder name to view, for the test that holds the two equal. */
export const viewsByFolder: Readonly<Record<string, View>> = Object.fromEntries(
  Object.entries(found).map(([path, module]) => [path.split('/')[1], module.view]),
);

/** All views in their order. A new folder is a new view; nothing else is edited. */
export const views: readonly View[] = Object.values(viewsByFolder).sort(
  (a, b) => a.order - b.order,
);
