import { describe, expect, it } from 'vitest';
import { listed, resultOf, resultWith, spanOf } from '../../tests/states';
import type { RunState, Runs, Span } from '../api/types.gen';
import { HOME, LANDING } from './location';
import { lastShown, NOTHING_SHOWN, select } from './selection';

type State = Span['state'];

const span = (label: string, state: State): Span =>
  spanOf({ trace: `trace-${label}`, label, file: `${label}.pt.trace.json`, state });
const run = (name: string, state: State, spans: Record<string, Span[]>): RunState => ({
  id: `id-${name}`,
  name,
  synthetic: false,
  state,
  result: null,
  workers: Object.entries(spans).map(([worker, own]) => ({
    name: worker,
    rank: null,
    host: null,
    spans: own,
  })),
});
const found = listed(
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

describe('while the files of a run come in', () => {
  const reading = (...states: State[]): Runs =>
    listed(
      run(
        'job',
        'reading',
        Object.fromEntries(states.map((state, at) => [`rank${at}`, [span(`${at}`, state)]])),
      ),
    );
  const shown = (patch: Partial<typeof HOME>, ...looks: Runs[]): string[] => {
    let last = NOTHING_SHOWN;
    return looks.map((found) => {
      const selected = select(found, { ...HOME, ...patch }, last);
      last = lastShown({ ...HOME, ...patch }, selected, last);
      return selected.kind === 'selected' ? selected.selection.worker.name : selected.kind;
    });
  };

  it('the recording that is shown stays, though others before it become ready', () => {
    expect(
      shown(
        {},
        reading('queued', 'reading', 'queued'),
        reading('queued', 'queued', 'ready'),
        reading('queued', 'ready', 'ready'),
        reading('ready', 'ready', 'ready'),
        reading('ready', 'ready', 'unreadable'),
      ),
    ).toEqual(['rank1', 'rank2', 'rank2', 'rank2', 'rank0']);
  });

  it('a link still shows what it names', () => {
    const looks = [reading('queued', 'ready'), reading('ready', 'ready')];
    expect(shown({ worker: 'rank0' }, ...looks)).toEqual(['rank0', 'rank0']);
  });
});

it('has no data in an empty folder', () => {
  expect(select(listed(), { ...HOME, run: 'x' }).kind).toBe('empty');
});

describe('the latest run', () => {
  const timed = (name: string, state: State, time: string): RunState =>
    run(name, state, { w: [{ ...span(name, state), file: `w.${time}.pt.trace.json.gz` }] });
  const three = [
    timed('old', 'ready', '1700000001000000000'),
    timed('new', 'queued', '1700000003000000000'),
    timed('broken', 'unreadable', '1700000009000000000'),
    run('untimed', 'ready', { w: [span('1', 'ready')] }),
  ];
  const shown = (last: string | null, ...all: RunState[]): string | null => {
    const selected = select(listed(...all), HOME, { ...NOTHING_SHOWN, run: last });
    return selected.kind === 'selected' ? selected.selection.run.name : null;
  };

  it('is shown where the link names none, unless it cannot be read', () => {
    expect(shown(null, ...three)).toBe('new');
  });

  it('does not push aside the run that is being looked at', () => {
    const newer = timed('newer', 'ready', '1700000005000000000');
    expect(shown('id-new', newer, ...three)).toBe('new');
    expect(shown('id-broken', newer, ...three)).toBe('newer');
    expect(shown('id-gone', newer, ...three)).toBe('newer');
  });

  it('is not one whose reading was cancelled, but where nothing else can be shown', () => {
    const stopped = timed('stopped', 'cancelled', '1700000005000000000');
    expect(shown(null, stopped, ...three)).toBe('new');
    expect(shown('id-stopped', stopped, ...three)).toBe('stopped');
    expect(shown(null, timed('broken', 'unreadable', '1700000009000000000'), stopped)).toBe(
      'stopped',
    );
  });

  it('is the first where all are broken', () => {
    expect(shown(null, timed('a', 'unreadable', '1'), timed('b', 'unreadable', '2'))).toBe('a');
  });
});

describe('on the view of all runs', () => {
  const scored = (name: string, result: RunState['result']): RunState => ({
    ...run(name, 'ready', { w: [span('1', 'ready')] }),
    result,
  });
  const runs = listed(
    scored('healthy', resultOf()),
    scored('worst', resultWith('critical', 0.5)),
    scored('bad', resultWith('warning', 0.1)),
  );
  const shown = (all: Runs, view: string, last: string | null = null): string | null => {
    const selected = select(all, { ...HOME, view }, { ...NOTHING_SHOWN, run: last });
    return selected.kind === 'selected' ? selected.selection.run.name : null;
  };

  it('the run with the most serious and largest saving is shown, elsewhere the latest', () => {
    expect(shown(runs, 'runs')).toBe('worst');
    expect(shown(runs, LANDING)).toBe('worst');
    expect(shown(runs, 'advice')).toBe('healthy');
    expect(shown(runs, 'advice', 'id-worst')).toBe('worst');
  });

  it('the one shown so far gives way only while results arrive', () => {
    expect(shown(runs, 'runs', 'id-bad')).toBe('bad');
    expect(shown({ ...runs, has_pending_results: true }, 'runs', 'id-bad')).toBe('worst');
    expect(shown({ ...runs, loading: true }, 'runs', 'id-bad')).toBe('worst');
    expect(shown({ ...runs, loading: true }, 'advice', 'id-bad')).toBe('bad');
  });
});
