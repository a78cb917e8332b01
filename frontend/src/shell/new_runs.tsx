import { type ReactNode, useState } from 'react';
import type { RunState, Runs } from '../api/types.gen';
import { plural } from '../core/format';
import { type Patch, useNavigation } from '../state/navigation';
import { Button } from '../widgets/button';
import { CloseNotice } from '../widgets/close_notice';
import { Icon } from '../widgets/icon';

interface Props {
  readonly runs: Runs;
  /** The id of the run that the page shows; null: it shows none in particular. */
  readonly shown: string | null;
}

const idsOf = ({ runs }: Runs): ReadonlySet<string> => new Set(runs.map(({ id }) => id));

/** A single run's advice; several runs in their list, the latest first. */
function locationOf(fresh: readonly RunState[]): Patch {
  const [first] = fresh;
  const single = first && fresh.length === 1 ? { view: 'advice', run: first.id } : null;
  return single ?? { view: 'runs', sort: { key: 'recorded', descending: true } };
}

/** A notice of runs that appeared while the page is open, until they are opened or it is closed. */
export function NewRuns({ runs, shown }: Props): ReactNode {
  const { go } = useNavigation();
  const [seen, setSeen] = useState<ReadonlySet<string> | null>(null);
  if (seen === null && !runs.scanning && runs.runs.length > 0) setSeen(idsOf(runs));
  if (seen !== null && shown !== null && !seen.has(shown)) setSeen(new Set([...seen, shown]));
  const fresh = seen === null ? [] : runs.runs.filter(({ id }) => !seen.has(id));
  if (fresh.length === 0) return null;
  const close = (): void => setSeen(idsOf(runs));
  const open = (): void => {
    close();
    go(locationOf(fresh));
  };
  return (
    <aside className="notice framed flex" aria-label="New runs">
      <Icon name="runs" size={15} />
      <p className="grow ellipsis" role="status">
        <strong>{plural(fresh.length, 'new run')}</strong>:{' '}
        {fresh.map(({ name }) => name).join(', ')}
      </p>
      <Button small onClick={open}>
        Open
      </Button>
      <CloseNotice onClose={close} />
    </aside>
  );
}
