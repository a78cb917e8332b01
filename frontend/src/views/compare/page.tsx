import type { ReactNode } from 'react';
import { useRunList } from '../../api/queries';
import type { Runs } from '../../api/types.gen';
import { isPending } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { Empty } from '../../widgets/empty';
import { Goto } from '../../widgets/goto';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Reading } from '../../widgets/reading';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { useComparison } from './query';
import { ComparisonReport } from './report';
import { type Side, type Sides, sidesOf, spansOfSide } from './sides';
import { Versus } from './versus';
import './compare.css';

function NothingToCompare({ unknown }: { readonly unknown: string | null }): ReactNode {
  if (unknown !== null) {
    return (
      <Empty icon="info" title="The baseline run was not found">
        <p>
          “{unknown}” is not in this log directory: it may have been renamed or removed, or the link
          belongs to another directory.
        </p>
        <Goto to={{ baseRun: null, baseWorker: null, baseSpan: null }} className="button">
          Compare with the previous run
        </Goto>
      </Empty>
    );
  }
  return (
    <Empty icon="compare" title="Nothing to compare with yet">
      <p>
        This is the only trace in the log directory. Change one thing and record again into another
        folder of the same directory to compare the two.
      </p>
    </Empty>
  );
}

/** Whether no file of a side has been read yet. */
const isPendingSide = (side: Side): boolean => {
  const spans = spansOfSide(side);
  return spans.some(isPending) && spans.every(({ state }) => state !== 'ready');
};

function LoadedReport({
  before,
  after,
}: {
  readonly before: Side;
  readonly after: Side;
}): ReactNode {
  const query = useComparison(before, after);
  return (
    <Loaded query={query} what="The comparison">
      {(data) => <ComparisonReport data={data} before={before} after={after} />}
    </Loaded>
  );
}

function Body({ before, after, unknown }: Sides): ReactNode {
  if (!before) return <NothingToCompare unknown={unknown} />;
  const pending = [before, after].find(isPendingSide);
  if (!pending) return <LoadedReport before={before} after={after} />;
  const [span] = spansOfSide(pending);
  return <Reading run={pending.run} trace={span?.trace ?? ''} />;
}

export function ComparePage({ selection, runs }: PageProps & { readonly runs: Runs }): ReactNode {
  const { location } = useNavigation();
  const sides = sidesOf(runs, selection, location);
  return (
    <div className="page compare">
      <ViewHeader title="Compare" note="differences between two runs, and their significance" />
      <div className="stack">
        {sides.before && (
          <Versus runs={runs} after={sides.after} before={sides.before} reason={sides.reason} />
        )}
        <Body {...sides} />
      </div>
    </div>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const runs = useRunList();
  return runs ? <ComparePage selection={selection} runs={runs} /> : <Skeleton />;
}
