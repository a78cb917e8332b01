/** Runs in the states that sample logs do not have: being read, unreadable, empty. */
import type { Problem, RunState, Runs, Span } from '../src/api/types.gen';

const EMPTY_FILE: Problem = {
  path: 'broken/worker0.1.pt.trace.json',
  message: 'The file is empty.',
  remedy: 'Record it again; the disk may have been full.',
};

function span(rank: number): Span {
  const isReading = rank < 2;
  return {
    trace: `reading-${rank}`,
    label: '1',
    file: `rank${rank}.1700000000000.pt.trace.json.gz`,
    state: isReading ? 'reading' : 'queued',
    progress: isReading
      ? { phase: 'events', bytes_done: 123_456_789, bytes_total: 516_000_000, events: 2_345_678 }
      : null,
    problem: null,
  };
}

export const readingRun: RunState = {
  id: 'reading',
  name: 'llama_fsdp',
  synthetic: false,
  state: 'reading',
  workers: [0, 1, 2, 3].map((rank) => ({ name: `rank${rank}`, rank, spans: [span(rank)] })),
};

export const unreadableRun: RunState = {
  id: 'broken',
  name: 'broken',
  synthetic: false,
  state: 'unreadable',
  workers: [
    {
      name: 'worker0',
      rank: null,
      spans: [
        {
          trace: 'broken-0',
          label: '1',
          file: 'worker0.1.pt.trace.json',
          state: 'unreadable',
          progress: null,
          problem: EMPTY_FILE,
        },
      ],
    },
  ],
};

export const noRuns: Runs = {
  schema: 1,
  logdir: 'log',
  scanning: false,
  loading: false,
  runs: [],
  problems: [],
  looked_for: 'files named <worker>.<time>.pt.trace.json',
};
