import type { ReactNode } from 'react';
import type { Narrowing } from '../../api/queries';
import type { Modules } from '../../api/types.gen';
import type { Selection } from '../../state/selection';

/** The data of both forms of the view. */
export interface ModulesProps {
  readonly table: Modules;
  readonly selection: Selection;
  readonly narrowing: Narrowing | null;
  readonly isStale: boolean;
  /** Switches between instances and classes. */
  readonly grouping: ReactNode;
}
