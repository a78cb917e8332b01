/** What the URL compares with: another recording, the step before, or nothing. */
import { useKnownRuns } from '../../api/known_runs';
import { type Narrowing, useOverview } from '../../api/queries';
import type { Overview, Runs, Span } from '../../api/types.gen';
import type { PageLocation } from '../../state/location';
import { type Patch, useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import type { Baseline } from './questions';

export interface Choice {
  readonly id: string;
  readonly label: string;
  readonly patch: Patch;
}

/** In a comparison of runs: all workers, all spans. */
const ALL = '*';

/** The recording that the base of the URL names; the worker of the same name where it names none. */
export function baseSpan(
  runs: Runs | undefined,
  location: PageLocation,
  worker: string,
): Span | null {
  const { baseRun, baseWorker, baseSpan: label } = location;
  const run = runs?.runs.find(({ id, name }) => id === baseRun || name === baseRun);
  const wanted = baseWorker === null || baseWorker === ALL ? worker : baseWorker;
  const found = run?.workers.find(({ name }) => name === wanted) ?? run?.workers[0];
  const spans = found?.spans ?? [];
  return spans.find((each) => each.label === label) ?? spans.at(-1) ?? null;
}

/** The step before the one that is shown. */
export function previousStep(
  overview: Overview | undefined,
  step: number | null,
): Narrowing | null {
  const steps = overview?.steps ?? [];
  const at = steps.findIndex(({ number }) => number === step);
  const found = at < 1 ? undefined : steps[at - 1];
  if (!found) return null;
  const { host_start_ns: start_ns, host_end_ns: end_ns, number } = found;
  return { start_ns, end_ns, label: `step ${number}` };
}

const NO_BASE: Patch = { baseRun: null, baseWorker: null, baseSpan: null };
const MOST = 30;

/** What can be compared with; the first is nothing. */
export function choicesOf(
  runs: Runs | undefined,
  { run, worker, span }: Selection,
  step: Narrowing | null,
): readonly Choice[] {
  const others = (runs?.runs ?? []).filter((each) => each.id !== run.id && each.state === 'ready');
  const here = (label: string, baseWorker: string, baseSpanLabel: string | null): Choice => ({
    id: `${baseWorker} ${baseSpanLabel ?? ''}`,
    label,
    patch: { baseRun: run.id, baseWorker, baseSpan: baseSpanLabel },
  });
  return [
    { id: '', label: 'Nothing', patch: NO_BASE },
    ...(step ? [{ id: 'step', label: `The step before (${step.label})`, patch: NO_BASE }] : []),
    ...worker.spans
      .filter((each) => each !== span)
      .map((each) => here(`${worker.name}, ${each.label}`, worker.name, each.label)),
    ...run.workers
      .filter((each) => each !== worker)
      .slice(0, MOST)
      .map((each) => here(each.name, each.name, null)),
    ...others.slice(0, MOST).map((each) => ({
      id: each.id,
      label: each.name,
      patch: { ...NO_BASE, baseRun: each.id },
    })),
  ];
}

export interface Comparison {
  readonly baseline: Baseline | null;
  /** In words; empty where nothing is compared. */
  readonly label: string;
  readonly choices: readonly Choice[];
}

const isChosen = ({ patch }: Choice, location: PageLocation): boolean =>
  patch.baseRun === location.baseRun &&
  patch.baseWorker === location.baseWorker &&
  patch.baseSpan === location.baseSpan;

export function useComparison(selection: Selection): Comparison {
  const { location } = useNavigation();
  const runs = useKnownRuns();
  const { step, time, options } = location;
  const isOfStep = step !== null && time === null;
  const overview = useOverview(selection.span.trace, { enabled: isOfStep });
  const before = isOfStep ? previousStep(overview.data, step) : null;
  const choices = choicesOf(runs, selection, before);
  if (options.diff === 'step' && before) {
    return { baseline: { kind: 'time', time: before }, label: before.label, choices };
  }
  const found = options.diff === 'base' ? baseSpan(runs, location, selection.worker.name) : null;
  if (!found) return { baseline: null, label: '', choices };
  const { baseRun } = location;
  const named = runs?.runs.find(({ id, name }) => id === baseRun || name === baseRun)?.name;
  const label = choices.find((each) => isChosen(each, location))?.label ?? named ?? found.label;
  return { baseline: { kind: 'recording', trace: found.trace }, label, choices };
}
