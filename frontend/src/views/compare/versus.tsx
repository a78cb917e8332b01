import type { ReactNode } from 'react';
import type { RunState, Runs } from '../../api/types.gen';
import { plural } from '../../core/format';
import { spansOf } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { Button } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { type Choice, Picker } from '../../widgets/picker';
import { StepsField, withSwappedSteps } from './selected_steps';
import { ALL, asAfter, asBefore, counterpart, type Side } from './sides';

function workerChoices(run: RunState): Choice[] {
  const all = { key: ALL, label: `All ${plural(run.workers.length, 'worker')}` };
  const rest = run.workers.map(({ name, rank, spans }) => ({
    key: name,
    label: name,
    note: rank === null ? undefined : `rank ${rank}`,
    state: spans.length === 1 ? spans[0]?.state : undefined,
  }));
  return run.workers.length > 1 ? [all, ...rest] : rest;
}

/** Spans of the selected worker, or of any worker. */
function spanChoices({ run, worker }: Side): Choice[] {
  const spans = run.workers
    .filter(({ name }) => worker === null || name === worker)
    .flatMap((rest) => rest.spans);
  const labels = [...new Set(spans.map(({ label }) => label))];
  const rest = labels.map((label) => {
    const span = worker === null ? undefined : spans.find((other) => other.label === label);
    return { key: label, label, state: span?.state, note: span?.file };
  });
  const all = { key: ALL, label: `All ${plural(labels.length, 'span')}` };
  return labels.length > 1 ? [all, ...rest] : rest;
}

/** The selected key; a run of one worker has no choice “all”. */
const keyOf = (name: string | null, choices: readonly Choice[]): string =>
  name ?? (choices.length > 1 ? ALL : (choices[0]?.key ?? ALL));

interface SideProps {
  readonly runs: Runs;
  readonly side: Side;
  readonly title: string;
  readonly note: string;
  /** The option of its steps. */
  readonly steps: 'steps' | 'base-steps';
  readonly choose: (side: Side) => void;
}

function SidePicker({ runs, side, title, note, steps, choose }: SideProps): ReactNode {
  const workers = workerChoices(side.run);
  const spans = spanChoices(side);
  const nameOfKey = (key: string): string | null => (key === ALL ? null : key);
  return (
    <fieldset className="versus-side">
      <legend>
        {title}
        {note !== '' && <span className="muted"> {note}</span>}
      </legend>
      <Picker
        label="Run"
        choices={runs.runs.map(({ id, name, state, synthetic }) => ({
          key: id,
          label: name,
          state,
          note: synthetic ? 'synthetic' : undefined,
        }))}
        value={side.run.id}
        onChoose={(key) => {
          const run = runs.runs.find(({ id }) => id === key);
          if (run) choose(counterpart(side, run));
        }}
      />
      {spansOf(side.run).length > 1 && (
        <>
          <Picker
            label="Worker"
            choices={workers}
            value={keyOf(side.worker, workers)}
            onChoose={(key) => choose({ ...side, worker: nameOfKey(key) })}
          />
          <Picker
            label="Span"
            choices={spans}
            value={keyOf(side.span, spans)}
            onChoose={(key) => choose({ ...side, span: nameOfKey(key) })}
          />
        </>
      )}
      <StepsField name={steps} />
    </fieldset>
  );
}

interface Props {
  readonly runs: Runs;
  readonly before: Side;
  readonly after: Side;
  /** The reason for a default baseline. */
  readonly reason: string;
}

/** The pickers of both sides. */
export function Versus({ runs, before, after, reason }: Props): ReactNode {
  const { location, go } = useNavigation();
  const { options } = location;
  return (
    <div className="card versus">
      <SidePicker
        runs={runs}
        side={before}
        title="Before"
        note={reason}
        steps="base-steps"
        choose={(side) => go(asBefore(side))}
      />
      <Button
        square
        title="Swap before and after"
        aria-label="Swap before and after"
        onClick={() => go({ ...asAfter(before, withSwappedSteps(options)), ...asBefore(after) })}
      >
        <Icon name="swap" />
      </Button>
      <SidePicker
        runs={runs}
        side={after}
        title="After"
        note="the shown run"
        steps="steps"
        // The baseline stays, also a default one.
        choose={(side) => go({ ...asAfter(side, options), ...asBefore(before) })}
      />
    </div>
  );
}
