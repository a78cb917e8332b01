import { lazy, type ReactNode, Suspense } from 'react';
import { useNavigation } from '../state/navigation';
import { views } from '../views';
import type { View } from '../views/view';
import type { HelpSection } from '../widgets/help';
import { paletteKey, SHELL_KEYS } from './keys';

const Help = lazy(() => import('../widgets/help'));

/** Sections of shortcuts, those of the current view first. */
function sectionsOf(all: readonly View[], shown: string): HelpSection[] {
  const sections = all.flatMap(({ id, title, keys }) =>
    keys && keys.length > 0 ? [{ id, title: `In ${title}`, keys }] : [],
  );
  return [
    ...sections.filter(({ id }) => id === shown),
    ...sections.filter(({ id }) => id !== shown),
  ];
}

export function ShellHelp({ close }: { readonly close: () => void }): ReactNode {
  const { location } = useNavigation();
  const everywhere: HelpSection = {
    title: 'Everywhere',
    keys: [
      [paletteKey(), 'Find anything: views, runs, ranks, steps, findings, names'],
      ...SHELL_KEYS,
    ],
  };
  return (
    <Suspense fallback={null}>
      <Help
        close={close}
        chords={views.map(({ key, title }) => [`g ${key}`, title])}
        sections={[everywhere, ...sectionsOf(views, location.view)]}
      />
    </Suspense>
  );
}
