import type { ComponentType } from 'react';
import type { HealthItem } from '../api/types.gen';
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
  /** What damage to the recording would make unreliable: names in `HealthItem.affects`. */
  readonly restsOn: readonly string[];
  /** Something in the view that should be seen, by how bad it is. */
  readonly mark?: (selection: Selection) => HealthItem['severity'] | null;
  readonly Page: ComponentType<PageProps>;
}
