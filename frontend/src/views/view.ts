import type { ComponentType } from 'react';
import type { HealthItem, WorkerReport } from '../api/types.gen';
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
  /** What an answer is about: one recording, where nothing else is said; all recordings of a run; or all runs. */
  readonly about?: 'recording' | 'run' | 'runs';
  /** Whether what it says of one recording rests on the others of its run as well. */
  readonly restsOnRun?: boolean;
  /** Whether its figures follow the step or the time that the page is narrowed to. */
  readonly narrows?: boolean;
  /**
   * Why there is nothing to see in this recording, as far as that is known beforehand; the view still opens, and says
   * what to record. What the advice says of the recording is undefined until it is there: see `core/recorded_parts.ts`.
   */
  readonly missing?: (selection: Selection, report: WorkerReport | undefined) => string | null;
  /** Its own keys and what they do, for the help. */
  readonly keys?: readonly (readonly [string, string])[];
  readonly Page: ComponentType<PageProps>;
}
