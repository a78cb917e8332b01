import type { UseQueryResult } from '@tanstack/react-query';
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import type { Overview, StepRow } from '../../api/types.gen';
import { duration, plural, share } from '../../core/format';
import { movedIndex } from '../../core/list_keys';
import { stepsOfTime, timeOfSteps } from '../../core/step_choice';
import { useNavigation } from '../../state/navigation';
import { Button } from '../../widgets/button';
import { Loaded } from '../../widgets/loaded';
import { Windowed } from '../../widgets/windowed';

interface Props {
  readonly query: UseQueryResult<Overview>;
  readonly close: () => void;
}

const ROW_PX = 30;

interface ListProps {
  readonly overview: Overview;
  readonly close: () => void;
}

/** The deviation from the mean duration: `+12 %`; empty below 1 %. */
function deviation(step: StepRow, meanNs: number): string {
  const off = step.duration_ns / meanNs - 1;
  if (!Number.isFinite(off) || Math.abs(off) < 0.01) return '';
  return `${off > 0 ? '+' : '−'}${share(Math.abs(off))}`;
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly steps: readonly StepRow[];
  readonly onChange: (text: string) => void;
}

function StepField({ label, value, steps, onChange }: FieldProps): ReactNode {
  return (
    <label>
      {label}
      <input
        type="number"
        min={steps[0]?.number}
        max={steps.at(-1)?.number}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface RangeProps extends ListProps {
  readonly selected: readonly [number, number] | null;
}

/** A filter from one step to another. */
function Range({ overview, close, selected }: RangeProps): ReactNode {
  const { steps } = overview;
  const { go } = useNavigation();
  const [from, setFrom] = useState(String(selected?.[0] ?? steps[0]?.number ?? 0));
  const [to, setTo] = useState(String(selected?.[1] ?? steps.at(-1)?.number ?? 0));
  const stepOf = (text: string): StepRow | undefined =>
    steps.find((row) => row.number === Number(text));
  const [one, other] = [stepOf(from), stepOf(to)];
  return (
    <form
      className="narrow-range flex muted"
      onSubmit={(event) => {
        event.preventDefault();
        if (!one || !other) return;
        go({ time: timeOfSteps(one, other), step: null });
        close();
      }}
    >
      <StepField label="From step" value={from} steps={steps} onChange={setFrom} />
      <StepField label="to" value={to} steps={steps} onChange={setTo} />
      <button type="submit" className="button" disabled={!one || !other}>
        Filter
      </button>
    </form>
  );
}

function Steps({ overview, close }: ListProps): ReactNode {
  const { steps, step: mean } = overview;
  const { location, go } = useNavigation();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.focus(), []);
  const longestNs = steps.reduce((most, row) => Math.max(most, row.duration_ns), 1);
  const range = location.time && stepsOfTime(steps, location.time);
  const selectedAt = steps.findIndex((row) => row.number === location.step);
  const [active, setActive] = useState(Math.max(0, selectedAt));
  const choose = (at: number, isRange: boolean): void => {
    const step = steps[at];
    if (!step) return;
    const anchor = isRange ? steps[selectedAt] : undefined;
    if (anchor) go({ time: timeOfSteps(anchor, step), step: null });
    else go({ step: step.number, time: null });
    close();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = movedIndex(event.key, active, steps.length);
    if (next !== null) setActive(next);
    else if (event.key === 'Enter' || event.key === ' ') choose(active, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isIn = ({ number }: StepRow): boolean =>
    range ? number >= range[0] && number <= range[1] : number === location.step;
  return (
    <>
      <div
        className="narrow-steps"
        ref={list}
        role="listbox"
        aria-label="Steps"
        tabIndex={0}
        aria-activedescendant={`${id}-${active}`}
        onKeyDown={onKeyDown}
      >
        <Windowed
          count={steps.length}
          rowPx={ROW_PX}
          active={active}
          render={(at) => {
            const step = steps[at] as StepRow;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the listbox around it
              <div
                id={`${id}-${at}`}
                role="option"
                tabIndex={-1}
                aria-selected={isIn(step)}
                aria-setsize={steps.length}
                aria-posinset={at + 1}
                className={at === active ? 'narrow-step option active' : 'narrow-step option'}
                onClick={(event: MouseEvent) => choose(at, event.shiftKey)}
              >
                <span className="number">{step.number}</span>
                <span className="track" aria-hidden="true">
                  <span style={{ width: `${(100 * step.duration_ns) / longestNs}%` }} />
                </span>
                <span className="number">{duration(step.duration_ns)}</span>
                <span className="number note">{deviation(step, mean.mean_ns)}</span>
              </div>
            );
          }}
        />
      </div>
      <Range overview={overview} close={close} selected={range} />
    </>
  );
}

/** The list of steps, to filter all views to a step or a range. */
export default function StepList({ query, close }: Props): ReactNode {
  const { location, go } = useNavigation();
  const isWhole = location.step === null && location.time === null;
  return (
    <>
      <div className="narrow-head flex">
        <Button
          disabled={isWhole}
          onClick={() => {
            go({ step: null, time: null });
            close();
          }}
        >
          Whole trace
        </Button>
        <p className="note">
          {query.data && query.data.steps.length > 0
            ? `${plural(query.data.steps.length, 'step')}, mean ${duration(query.data.step.mean_ns)}. Shift+click selects a range.`
            : 'Filter all views to a step or a time range.'}
        </p>
      </div>
      <Loaded query={query} what="The list of steps">
        {(overview) =>
          overview.steps.length > 0 ? (
            <Steps overview={overview} close={close} />
          ) : (
            <p className="muted">
              This trace has no steps. Call <code>prof.step()</code> at the end of each iteration.
              To select a time, drag in the ruler of the timeline.
            </p>
          )
        }
      </Loaded>
    </>
  );
}
