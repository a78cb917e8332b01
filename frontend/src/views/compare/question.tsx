import type { ReactNode } from 'react';
import type { Candidate, RunState, Runs } from '../../api/types.gen';
import { plural } from '../../core/format';
import { isPending, spansOf } from '../../core/progress';
import { sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import { Picker } from '../../widgets/picker';
import {
  asAfter,
  asBefore,
  choicesInRun,
  counterpart,
  isSibling,
  nameOf,
  type Side,
} from './sides';

/** Most candidates of the list; the picker has all runs. */
const MOST_LISTED = 8;

const LEVELS: Readonly<Record<Candidate['level'], string>> = {
  comparable: 'comparable',
  'with-care': 'comparable with care',
  'not-comparable': 'not comparable',
};

interface Props {
  readonly runs: Runs;
  readonly after: Side;
  /** The most alike first. */
  readonly candidates: readonly Candidate[];
}

function CandidateRow({
  of,
  run,
  after,
}: {
  of: Candidate;
  run: RunState;
  after: Side;
}): ReactNode {
  return (
    <li>
      <Goto to={asBefore(counterpart(after, run))} className="candidate option">
        <span className="strong ellipsis">{run.name}</span>
        <span className={of.level === 'not-comparable' ? 'tag note' : 'tag note strong'}>
          {LEVELS[of.level]}
        </span>
        {of.reason !== '' && <span className="muted">{sentence(of.reason)}</span>}
      </Goto>
    </li>
  );
}

/** Asks for the baseline, as no run is known to be an earlier one of the same family. */
export function Question({ runs, after, candidates }: Props): ReactNode {
  const { go, location } = useNavigation();
  const others = runs.runs.filter(({ id }) => id !== after.run.id);
  const rated = candidates.flatMap((of) => {
    const run = others.find(({ id }) => id === of.run);
    return run ? [{ of, run, isSibling: isSibling(run, after.run) && of.is_same_model }] : [];
  });
  // Stable: by likeness, with runs of the folder first.
  const listed = rated
    .toSorted((a, b) => Number(b.isSibling) - Number(a.isSibling))
    .slice(0, MOST_LISTED);
  const pendingCount = others.filter((run) => spansOf(run).some(isPending)).length;
  return (
    <Card title={`Compare ${nameOf(after)} with which run?`} className="compare-question">
      <p className="muted">
        Its folder holds no earlier run of the same model, as far as times are known.
        {pendingCount > 0 && ` ${plural(pendingCount, 'run is', 'runs are')} still to be read.`}
      </p>
      {listed.length > 0 && (
        <ul aria-label="Likely baselines">
          {listed.map(({ of, run }) => (
            <CandidateRow key={run.id} of={of} run={run} after={after} />
          ))}
        </ul>
      )}
      <div className="row">
        {others.length > 0 && (
          <Picker
            label="Another run"
            choices={others.map(({ id, name, state }) => ({ key: id, label: name, state }))}
            value=""
            onChoose={(key) => {
              const run = others.find(({ id }) => id === key);
              if (run) go(asBefore(counterpart(after, run)));
            }}
          />
        )}
        {choicesInRun(after).map((choice) => (
          <Goto
            key={nameOf(choice.before)}
            to={{ ...asAfter(choice.after, location.options), ...asBefore(choice.before) }}
            className="button"
          >
            {nameOf(choice.before)}
          </Goto>
        ))}
      </div>
    </Card>
  );
}
