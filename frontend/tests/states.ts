/** Runs in states that the sample logs lack: being read, cancelled, unreadable, empty. */
import type { FirstFinding, Problem, RunResult, RunState, Runs, Span } from '../src/api/types.gen';
import type { Selection } from '../src/state/selection';

const EMPTY_FILE: Problem = {
  path: 'broken/worker0.1.pt.trace.json',
  message: 'The file is empty.',
  remedy: 'Record it again; the disk may have been full.',
};

/** A file, by default ready. */
export function spanOf(patch: Partial<Span> = {}): Span {
  return {
    trace: 't1',
    label: '1',
    file: 'worker0.1.pt.trace.json',
    state: 'ready',
    progress: null,
    problem: null,
    place: null,
    file_bytes: 1_000_000,
    events: patch.state === undefined || patch.state === 'ready' ? 1200 : null,
    damage: null,
    is_growing: false,
    ...patch,
  };
}

/** A file that is being read, by default 123 MB of 516 MB after 3 s. */
export function readingSpan(patch: Partial<Span> = {}): Span {
  return spanOf({
    state: 'reading',
    file_bytes: 516_000_000,
    progress: {
      phase: 'reading',
      bytes_done: 123_456_789,
      bytes_total: 516_000_000,
      events: 2_345_678,
      elapsed_ns: 3_000_000_000,
      left_ns: 9_500_000_000,
    },
    ...patch,
  });
}

export const queuedSpan = (place: number, patch: Partial<Span> = {}): Span =>
  spanOf({ state: 'queued', place, file_bytes: 516_000_000, ...patch });

export const cancelledSpan = (patch: Partial<Span> = {}): Span =>
  spanOf({ state: 'cancelled', file_bytes: 516_000_000, ...patch });

/** A run with one worker per file. */
export function runOf(name: string, state: RunState['state'], spans: readonly Span[]): RunState {
  const workers = spans.map((span, rank) => ({
    name: `rank${rank}`,
    rank,
    host: null,
    spans: [span],
  }));
  return { id: name, name, synthetic: false, state, workers, result: null };
}

/** The results of a run, by default of a healthy one on a CPU. */
export const resultOf = (patch: Partial<RunResult> = {}): RunResult => ({
  trace_count: 1,
  verdict: 'Step 20.0 ms.',
  slowest: 'rank0',
  step_ns: 20_000_000,
  step_count: 3,
  step_durations_ns: [18_000_000, 20_000_000, 22_000_000],
  busy_share: null,
  batch_size: null,
  finding: null,
  finding_count: 0,
  saving: null,
  withheld: '',
  ...patch,
});

/** Results with a finding of a severity that saves a fraction of a 20 ms step. */
export function resultWith(
  severity: FirstFinding['severity'],
  share: number,
  patch: Partial<RunResult> = {},
): RunResult {
  const saving = { low_ns: share * 10_000_000, high_ns: share * 20_000_000, share };
  const finding = { rule: 'item-sync', title: `A ${severity} finding`, severity, saving };
  return resultOf({ finding, finding_count: 1, saving, ...patch });
}

const of = (rank: number): Partial<Span> => ({
  trace: `reading-${rank}`,
  file: `rank${rank}.1700000000000.pt.trace.json.gz`,
});

/** Two files are being read, two are queued. */
export const readingRun: RunState = runOf('llama_fsdp', 'reading', [
  readingSpan(of(0)),
  readingSpan(of(1)),
  queuedSpan(1, of(2)),
  queuedSpan(2, of(3)),
]);

export const cancelledRun: RunState = runOf('stopped', 'cancelled', [
  cancelledSpan({ trace: 'stopped-0' }),
  cancelledSpan({ trace: 'stopped-1' }),
]);

export const unreadableRun: RunState = runOf('broken', 'unreadable', [
  spanOf({ trace: 'broken-0', state: 'unreadable', problem: EMPTY_FILE, file_bytes: 0 }),
]);

export const noRuns: Runs = {
  schema: 1,
  logdir: 'log',
  scanning: false,
  loading: false,
  has_pending_results: false,
  runs: [],
  problems: [],
  looked_at_count: 0,
  is_cancelled: false,
  looked_for: 'files named <worker>.<time>.pt.trace.json',
};

export const listed = (...runs: RunState[]): Runs => ({ ...noRuns, runs });

/** A run of one worker with several spans. */
export const runOfWorker = (name: string, spans: Span[]): RunState => ({
  ...runOf(name, spans[0]?.state ?? 'ready', []),
  workers: [{ name: 'w', rank: null, host: null, spans }],
});

/** A span of the first worker, selected. */
export function firstOf(run: RunState | undefined, at = 0): Selection {
  const [worker] = run?.workers ?? [];
  const span = worker?.spans[at];
  if (!run || !worker || !span) throw new Error('a run has a worker with a span');
  return { run, worker, span };
}
