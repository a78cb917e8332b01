import { type ReactNode, useEffect } from 'react';
import type { RunState, Runs, Span, Worker } from '../api/types.gen';
import { duration } from '../core/format';
import { spansOf } from '../core/progress';
import { addRecent, readRecent } from '../host/recent';
import { carried } from '../state/bound_options';
import { LANDING } from '../state/location';
import { useNavigation } from '../state/navigation';
import { withOptions } from '../state/option';
import type { Selection } from '../state/selection';
import { SyntheticBadge } from '../widgets/badge';
import { type Choice, Picker } from '../widgets/picker';

const SEVERITIES = ['critical', 'warning', 'info'] as const;

const worstDamage = (spans: readonly Span[]): Span['damage'] =>
  SEVERITIES.find((severity) => spans.some((span) => span.damage === severity)) ?? null;

/** The step time of a run, and whether it is synthetic. */
function runNote({ result, synthetic }: RunState): string {
  const step = result?.step_ns ? `${duration(result.step_ns)}/step` : '';
  return [step, synthetic ? 'synthetic' : ''].filter((word) => word !== '').join(', ');
}

function runChoices(runs: Runs): Choice[] {
  const hasFindings = runs.runs.some(({ result }) => result?.finding);
  return runs.runs.map((run) => ({
    key: run.id,
    label: run.name,
    state: run.state,
    damage: worstDamage(spansOf(run)),
    finding: hasFindings ? (run.result?.finding ?? null) : undefined,
    note: runNote(run),
  }));
}

function workerChoice(worker: Worker): Choice {
  const isAlone = worker.spans.length === 1;
  return {
    key: worker.name,
    label: worker.name,
    number: worker.rank,
    note: [worker.rank === null ? '' : `rank ${worker.rank}`, worker.host ?? '']
      .filter((word) => word !== '')
      .join(', '),
    about: worker.host ?? '',
    state: isAlone ? worker.spans[0]?.state : undefined,
    damage: worstDamage(worker.spans),
  };
}

interface Props {
  readonly runs: Runs;
  readonly selection: Selection;
}

/** Selects the run, the worker and the span. */
export function Pickers({ runs, selection }: Props): ReactNode {
  const { location, go } = useNavigation();
  const { run, worker, span } = selection;
  const isListed = location.view === 'runs' || location.view === LANDING;
  useEffect(() => {
    // The list selects a run by itself, and others while results arrive.
    if (!isListed || location.run !== null) addRecent('runs', run.id);
  }, [run.id, isListed, location.run]);
  const spans = worker.spans.map(({ label, state, file, damage }) => ({
    key: label,
    label,
    state,
    damage,
    note: file,
  }));
  return (
    <div className="pickers flex">
      <Picker
        label="Run"
        choices={runChoices(runs)}
        value={run.id}
        recent={readRecent('runs')}
        onChoose={(key) => go({ run: key })}
      />
      {run.synthetic && <SyntheticBadge />}
      <Picker
        label="Worker"
        choices={run.workers.map(workerChoice)}
        value={worker.name}
        onChoose={(key) => {
          const to = { run: run.id, worker: key, span: null };
          // A view of the whole run switches to this worker.
          go({ ...to, options: withOptions(carried(location, to), { about: null }) });
        }}
      />
      <Picker
        label="Span"
        choices={spans}
        value={span.label}
        onChoose={(key) => go({ run: run.id, worker: worker.name, span: key })}
      />
    </div>
  );
}
