import { describe, expect, it } from 'vitest';
import type { Link, WorkerReport } from '../../api/types.gen';
import { targetOf } from './links';

const link = (patch: Partial<Link>): Link => ({
  view: 'operators',
  search: null,
  group: null,
  step: null,
  start_ns: null,
  end_ns: null,
  trace: null,
  source: null,
  rank: null,
  ...patch,
});

const workers = [
  { trace: 't1', name: 'a', span: '1', rank: 0 },
  { trace: 't2', name: 'b', span: '2', rank: 3 },
] as unknown as WorkerReport[];

describe('a link of evidence', () => {
  it('with a time range links to the timeline, with a margin', () => {
    const target = targetOf(link({ view: 'overview', start_ns: 1e6, end_ns: 2e6 }), workers);
    expect(target).toEqual({ view: 'timeline', options: { at: '750000-2250000' } });
  });

  it('with a moment links to a non-empty range that starts in the trace', () => {
    const target = targetOf(link({ start_ns: 0, end_ns: 0 }), workers);
    expect(target).toEqual({ view: 'timeline', options: { at: '0-20001' } });
  });

  it('links to the trace or the rank that it names', () => {
    const other = { worker: 'b', span: '2' };
    expect(targetOf(link({ trace: 't2' }), workers)).toMatchObject(other);
    expect(targetOf(link({ rank: 3 }), workers)).toMatchObject(other);
    expect(targetOf(link({ rank: 9 }), workers)).not.toHaveProperty('worker');
  });

  it('with only a source line links to the operators called from it', () => {
    expect(targetOf(link({ source: 'train.py(12): f' }), workers)).toMatchObject({
      view: 'operators',
      group: 'stack',
      search: 'stack:"train.py(12): f"',
    });
  });
});
