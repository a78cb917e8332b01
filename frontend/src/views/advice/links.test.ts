import { describe, expect, it } from 'vitest';
import type { Link, Timeline, TimelineTrack, WorkerReport } from '../../api/types.gen';
import { targetOf } from './links';
import { rangeAround, shownTracks } from './mini_timeline';

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

const track = (id: number, kind: TimelineTrack['kind'], busy_ns: number): TimelineTrack => ({
  id,
  parent: null,
  kind,
  label: `track ${id}`,
  detail: '',
  row_count: 1,
  event_count: 1,
  busy_ns,
  order: id,
  unit: '',
  is_open: true,
});

describe('the tracks around an event', () => {
  const timeline = {
    tracks: [
      track(0, 'steps', 9),
      track(1, 'stream', 5),
      track(2, 'stream', 7),
      track(3, 'idle', 0),
      track(4, 'thread', 8),
      track(5, 'thread', 2),
      track(6, 'counter', 99),
    ],
  } as unknown as Timeline;
  const ids = (own: number | null): number[] => shownTracks(timeline, own).map(({ id }) => id);

  it('are the busiest stream, the idle causes and the busiest thread', () => {
    expect(ids(null)).toEqual([2, 3, 4]);
  });

  it('include the event’s track in place of a busier one', () => {
    expect(ids(1)).toEqual([1, 3, 4]);
    expect(ids(5)).toEqual([2, 3, 5]);
  });

  it('exclude tracks without slices', () => {
    expect(ids(6)).toEqual([2, 3, 4]);
  });
});

it('shows the duration of the event before and after it', () => {
  const event = { name: 'x', track: '', detail: '', event: null, start_ns: 1e6, duration_ns: 3e5 };
  expect(rangeAround(event)).toEqual({ startNs: 7e5, endNs: 1.6e6 });
  expect(rangeAround({ ...event, duration_ns: 0, start_ns: 10 })).toEqual({
    startNs: 0,
    endNs: 50_010,
  });
});
