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
import { useCandidates, useComparison } from './query';
import { Question } from './question';
import { ComparisonReport } from './report';
import {
  asBefore,
  choicesInRun,
  defaultSides,
  namedSides,
  type Side,
  type Sides,
  spansOfSide,
} from './sides';
import { Versus } from './versus';
import './compare.css';

function UnknownBaseline({ name }: { readonly name: string | null }): ReactNode {
  return (
    <Empty icon="info" title="The baseline run was not found">
      <p>
        “{name}” is not in this log directory: it may have been renamed or removed, or the link
        belongs to another directory.
      </p>
      <Goto to={{ baseRun: null, baseWorker: null, baseSpan: null }} className="button">
        Choose another run
      </Goto>
    </Empty>
  );
}

function NothingToCompare({ side }: { readonly side: Side }): ReactNode {
  return (
    <Empty icon="compare" title="Nothing to compare with yet">
      <p>
        This is the only trace in the log directory. Change one thing and record again into another
        folder of the same directory to compare the two.
      </p>
      <Goto to={asBefore(side)} className="button">
        Compare two of its steps
      </Goto>
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

interface BodyProps {
  readonly runs: Runs;
  readonly before: Side;
  readonly after: Side;
  readonly reason: string;
}

function Body({ runs, before, after, reason }: BodyProps): ReactNode {
  const pending = [before, after].find(isPendingSide);
  const [span] = pending ? spansOfSide(pending) : [];
  return (
    <>
      <Versus runs={runs} after={after} before={before} reason={reason} />
      {pending ? (
        <Reading run={pending.run} trace={span?.trace ?? ''} />
      ) : (
        <LoadedReport before={before} after={after} />
      )}
    </>
  );
}

type ListProps = PageProps & { readonly runs: Runs };

/** The comparison with the default baseline, or the question for one. */
function DefaultBody({ selection, runs }: ListProps): ReactNode {
  const { location } = useNavigation();
  const query = useCandidates(selection.run, runs);
  const isLoading = query.data === undefined && query.error === null;
  const candidates = query.data?.candidates ?? [];
  const sides: Sides = defaultSides(runs, selection, location, candidates);
  const { before, after } = sides;
  const isAlone = runs.runs.length < 2 && choicesInRun(after).length === 0;
  if (before === null && isAlone) return <NothingToCompare side={after} />;
  if (isLoading && runs.runs.length > 1) return <Skeleton />;
  if (before !== null) return <Body runs={runs} {...sides} before={before} />;
  return <Question runs={runs} after={after} candidates={candidates} />;
}

function NamedBody({ selection, runs }: ListProps): ReactNode {
  const { location } = useNavigation();
  const sides = namedSides(runs, selection, location);
  if (sides === 'unknown') return <UnknownBaseline name={location.baseRun} />;
  if (!sides?.before) return <DefaultBody selection={selection} runs={runs} />;
  return <Body runs={runs} {...sides} before={sides.before} />;
}

export function ComparePage({ selection, runs }: ListProps): ReactNode {
  return (
    <div className="page compare">
      <ViewHeader title="Compare" note="differences between two runs, and their significance" />
      <div className="stack">
        <NamedBody selection={selection} runs={runs} />
      </div>
    </div>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const runs = useRunList();
  return runs ? <ComparePage selection={selection} runs={runs} /> : <Skeleton />;
}
