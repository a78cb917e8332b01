import type { ReactNode } from 'react';
import { useKnownRuns } from '../../api/known_runs';
import type { Runs } from '../../api/types.gen';
import { isPending } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { Empty } from '../../widgets/empty';
import { Goto } from '../../widgets/goto';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Reading } from '../../widgets/reading';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { useComparison } from './answer';
import { ComparisonReport } from './report';
import { recordingsOf, type Side, type Sides, sidesOf } from './sides';
import { Versus } from './versus';
import './compare.css';

function NothingToCompare({ unknown }: { readonly unknown: string | null }): ReactNode {
  if (unknown !== null) {
    return (
      <Empty icon="info" title="The run to compare with is not there">
        <p>
          “{unknown}” is not in this log directory: it may have been renamed or removed, or this
          link may be from another one.
        </p>
        <Goto to={{ baseRun: null, baseWorker: null, baseSpan: null }} className="button">
          Compare with the run before
        </Goto>
      </Empty>
    );
  }
  return (
    <Empty icon="compare" title="There is nothing to compare with yet">
      <p>
        This is the only recording in the log directory. Change one thing, record again into another
        folder beside this one, and come back: the two are then compared here.
      </p>
    </Empty>
  );
}

/** A side none of whose files has been read yet. */
const isAwaited = (side: Side): boolean => {
  const spans = recordingsOf(side);
  return spans.some(isPending) && spans.every(({ state }) => state !== 'ready');
};

function Compared({ before, after }: { readonly before: Side; readonly after: Side }): ReactNode {
  const query = useComparison(before, after);
  return (
    <Loaded query={query} what="The comparison">
      {(answer) => <ComparisonReport answer={answer} before={before} after={after} />}
    </Loaded>
  );
}

function Body({ before, after, unknown }: Sides): ReactNode {
  if (!before) return <NothingToCompare unknown={unknown} />;
  const awaited = [before, after].find(isAwaited);
  if (!awaited) return <Compared before={before} after={after} />;
  const [span] = recordingsOf(awaited);
  return <Reading run={awaited.run} trace={span?.trace ?? ''} />;
}

/** What changed from one run, worker or span to another. */
export function ComparePage({ selection, runs }: PageProps & { readonly runs: Runs }): ReactNode {
  const { location } = useNavigation();
  const sides = sidesOf(runs, selection, location);
  return (
    <div className="page compare">
      <ViewHeader title="Compare" note="what changed, and which of it is more than noise" />
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
  const runs = useKnownRuns();
  return runs ? <ComparePage selection={selection} runs={runs} /> : <Skeleton />;
}
