/** The baseline in the URL: another trace, the previous step, or nothing. */
import { type Narrowing, useOverview, useRunList } from '../../api/queries';
import type { Overview, Runs, Span } from '../../api/types.gen';
import type { PageLocation } from '../../state/location';
import { type Patch, useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import type { Baseline } from './requests';

export interface Choice {
  readonly id: string;
  readonly label: string;
  readonly patch: Patch;
}

/** All workers, or all spans, in a comparison of runs. */
const ALL = '*';

/** The baseline trace that the URL names, by default that of the worker of the same name. */
export function baseSpan(
  runs: Runs | undefined,
  location: PageLocation,
  worker: string,
): Span | null {
  const { baseRun, baseWorker, baseSpan: label } = location;
  const run = runs?.runs.find(({ id, name }) => id === baseRun || name === baseRun);
  const workerName = baseWorker === null || baseWorker === ALL ? worker : baseWorker;
  const match = run?.workers.find(({ name }) => name === workerName) ?? run?.workers[0];
  const spans = match?.spans ?? [];
  return spans.find((other) => other.label === label) ?? spans.at(-1) ?? null;
}

/** The step before the shown one. */
export function previousStep(
  overview: Overview | undefined,
  step: number | null,
): Narrowing | null {
  const steps = overview?.steps ?? [];
  const at = steps.findIndex(({ number }) => number === step);
  const match = at < 1 ? undefined : steps[at - 1];
  if (!match) return null;
  const { host_start_ns: start_ns, host_end_ns: end_ns, number } = match;
  return { start_ns, end_ns, label: `step ${number}` };
}

const NO_BASE: Patch = { baseRun: null, baseWorker: null, baseSpan: null };
const MOST = 30;

/** The possible baselines; the first is none. */
export function choicesOf(
  runs: Runs | undefined,
  { run, worker, span }: Selection,
  step: Narrowing | null,
): readonly Choice[] {
  const others = (runs?.runs ?? []).filter(
    (other) => other.id !== run.id && other.state === 'ready',
  );
  const here = (label: string, baseWorker: string, baseSpanLabel: string | null): Choice => ({
    id: `${baseWorker} ${baseSpanLabel ?? ''}`,
    label,
    patch: { baseRun: run.id, baseWorker, baseSpan: baseSpanLabel },
  });
  return [
    { id: '', label: 'None', patch: NO_BASE },
    ...(step ? [{ id: 'step', label: `Previous step (${step.label})`, patch: NO_BASE }] : []),
    ...worker.spans
      .filter((other) => other !== span)
      .map((other) => here(`${worker.name}, ${other.label}`, worker.name, other.label)),
    ...run.workers
      .filter((other) => other !== worker)
      .slice(0, MOST)
      .map((other) => here(other.name, other.name, null)),
    ...others.slice(0, MOST).map((other) => ({
      id: other.id,
      label: other.name,
      patch: { ...NO_BASE, baseRun: other.id },
    })),
  ];
}

export interface Comparison {
  readonly baseline: Baseline | null;
  /** The name of the baseline; empty without one. */
  readonly label: string;
  readonly choices: readonly Choice[];
}

const isSelected = ({ patch }: Choice, location: PageLocation): boolean =>
  patch.baseRun === location.baseRun &&
  patch.baseWorker === location.baseWorker &&
  patch.baseSpan === location.baseSpan;

export function useComparison(selection: Selection): Comparison {
  const { location } = useNavigation();
  const runs = useRunList();
  const { step, time, options } = location;
  const isOfStep = step !== null && time === null;
  const overview = useOverview(selection.span.trace, { enabled: isOfStep });
  const before = isOfStep ? previousStep(overview.data, step) : null;
  const choices = choicesOf(runs, selection, before);
  if (options.diff === 'step' && before) {
    return { baseline: { kind: 'time', time: before }, label: before.label, choices };
  }
  const match = options.diff === 'base' ? baseSpan(runs, location, selection.worker.name) : null;
  if (!match) return { baseline: null, label: '', choices };
  const { baseRun } = location;
  const runName = runs?.runs.find(({ id, name }) => id === baseRun || name === baseRun)?.name;
  const label =
    choices.find((other) => isSelected(other, location))?.label ?? runName ?? match.label;
  return { baseline: { kind: 'trace', trace: match.trace }, label, choices };
}
