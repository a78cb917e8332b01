import type { ComponentType } from 'react';
import type { Selection } from '../state/selection';
import type { IconName } from '../widgets/icon';

export interface PageProps {
  readonly selection: Selection;
}

/** One page: a folder of its name with `index.tsx`, `fixture.json` and a test. */
export interface View {
  /** The folder's name, and the word in the URL. */
  readonly id: string;
  readonly title: string;
  readonly icon: IconName;
  readonly order: number;
  /** The key that leads here after `g`. */
  readonly key: string;
  /** What must have been read: every file of the run, or the one recording that is shown. */
  readonly needs: 'run' | 'recording';
  readonly Page: ComponentType<PageProps>;
}
