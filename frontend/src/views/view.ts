import type { ComponentType } from 'react';
import type { HealthItem, WorkerReport } from '../api/types.gen';
import type { Selection } from '../state/selection';
import type { IconName } from '../widgets/icon';

export interface PageProps {
  readonly selection: Selection;
}

/** One page: a folder of its name with `index.tsx`, `fixture.json` and a test. */
export interface View {
  /** The folder's name, also in the URL. */
  readonly id: string;
  readonly title: string;
  readonly icon: IconName;
  readonly order: number;
  /** The key that opens the view after `g`. */
  readonly key: string;
  /** The figures shown here that damage may make doubtful: names of `HealthItem.affects`. */
  readonly dependsOn: readonly string[];
  /** The severity of a problem that the view lists; marks its link. */
  readonly mark?: (selection: Selection) => HealthItem['severity'] | null;
  /** What the view covers: one trace (the default), all traces of a run, or all runs. */
  readonly scope?: 'trace' | 'run' | 'runs';
  /** Whether the view of one trace depends on the other traces of its run. */
  readonly dependsOnRun?: boolean;
  /** Whether the selected step or time range filters the view; `step`: only a step does. */
  readonly isFiltered?: boolean | 'step';
  /**
   * Why the view is empty for this trace, if known beforehand (see `core/recorded_parts.ts`); the view still opens and
   * shows what to record. The report is undefined until it is loaded.
   */
  readonly missing?: (selection: Selection, report: WorkerReport | undefined) => string | null;
  /** Keys of the view with their descriptions, for the help. */
  readonly keys?: readonly (readonly [string, string])[];
  readonly Page: ComponentType<PageProps>;
}

/** The keys of a table with details. */
export const TABLE_KEYS: NonNullable<View['keys']> = [
  ['↑ ↓ ← →', 'Move between rows and cells'],
  ['Enter', 'Show the details of the row'],
  ['Ctrl C', 'Copy the row or cell'],
  ['Alt ← →', 'Resize the column with the focused header'],
];
