import { expect, it } from 'vitest';
import type { RunState, Runs, Span } from '../api/types.gen';
import { HOME } from './location';
import { select } from './selection';

type State = Span['state'];

const span = (label: string, state: State): Span => ({
  trace: `trace-${label}`,
  label,
  file: `${label}.pt.trace.json`,
  state,
  progress: null,
  problem: null,
});
const run = (name: string, state: State, spans: Record<string, Span[]>): RunState => ({
  id: `id-${name}`,
  name,
  synthetic: false,
  state,
  workers: Object.entries(spans).map(([worker, own]) => ({ name: worker, rank: null, spans: own })),
});
const runs = (...all: RunState[]): Runs => ({
  schema: 1,
  logdir: 'log',
  scanning: false,
  loading: false,
  runs: all,
  problems: [],
  looked_for: '',
});

const found = runs(
  run('slow', 'reading', { a: [span('1', 'reading')] }),
  run('done', 'ready', {
    a: [span('1', 'unreadable')],
    b: [span('1', 'unreadable'), span('2', 'ready')],
  }),
);

const chosen = (patch: Partial<typeof HOME>): string => {
  const selected = select(found, { ...HOME, ...patch });
  if (selected.kind !== 'selected') return selected.kind;
  const { selection } = selected;
  return [selection.run.name, selection.worker.name, selection.span.label].join(' ');
};

it('shows what can be shown where the link names nothing', () => {
  expect(chosen({})).toBe('done b 2');
});

it('shows what the link names, by id or by name', () => {
  expect(chosen({ run: 'id-slow' })).toBe('slow a 1');
  expect(chosen({ run: 'done', worker: 'a' })).toBe('done a 1');
  expect(chosen({ run: 'done', worker: 'b', span: '1' })).toBe('done b 1');
});

it('shows the nearest where worker or span are gone, but never another run', () => {
  expect(chosen({ run: 'done', worker: 'gone', span: '9' })).toBe('done b 2');
  expect(chosen({ run: 'gone' })).toBe('unknown-run');
});

it('has nothing to show in an empty folder', () => {
  expect(select(runs(), { ...HOME, run: 'x' }).kind).toBe('empty');
});
