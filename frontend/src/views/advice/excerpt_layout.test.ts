import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claim, outcome } from '../../../tests/samples';
import type {
  ClaimedTime,
  EventReference,
  ExcerptLane,
  Outcome,
  TimelineExcerpt,
} from '../../api/types.gen';
import {
  type Box,
  claimedText,
  excerptParameters,
  extentOf,
  heightOf,
  LEAST_CLAIMED_PX,
  LEAST_EVENT_PX,
  layoutOf,
  type PictureLayout,
  SLICE_PX,
  type Subject,
  subjectOf,
} from './excerpt_layout';
import advice from './fixture.json';
import asked from './fixtures/asked.json';
import recorded from './fixtures/timeline-excerpt.json';

const EXCERPT = recorded as unknown as TimelineExcerpt;
const OUTCOME = advice.outcomes.find(
  ({ rule, status }) => rule === 'dataloader-bound' && status === 'found',
) as unknown as Outcome;
const ROUNDING_PX = 1e-6;
const measure = (text: string): number => text.length * 6;

const event = (patch: Partial<EventReference> = {}): EventReference => ({
  name: 'aten::mm',
  track: 'thread 7',
  start_ns: 1000,
  duration_ns: 500,
  detail: '',
  event: 3,
  ...patch,
});

const time = (start_ns: number, end_ns: number): ClaimedTime => ({
  start_ns,
  end_ns,
  claimed_ns: end_ns - start_ns,
});

const subjectWith = (
  events: EventReference[],
  times: ClaimedTime[],
  trace = 't1',
): Subject | null =>
  subjectOf(outcome({ trace, events, claim: { ...claim(1e6), example_times: times } }));

function expectInside(box: Box, [left, right, bottom]: readonly [number, number, number]): void {
  expect(box.x).toBeGreaterThanOrEqual(left - ROUNDING_PX);
  expect(box.x + box.width).toBeLessThanOrEqual(right + ROUNDING_PX);
  expect(box.y).toBeGreaterThanOrEqual(0);
  expect(box.y + box.height).toBeLessThanOrEqual(bottom);
  expect(box.width).toBeGreaterThan(0);
  expect(box.height).toBeGreaterThan(0);
}

/** Everything that is in the response lies in the canvas, in its lane, and the subject is marked. */
function check(excerpt: TimelineExcerpt, subject: Subject, widthPx: number): PictureLayout {
  const layout = layoutOf(excerpt, subject, widthPx, measure);
  const { labelsPx, heightPx } = layout;
  const canvas = [labelsPx, widthPx, heightPx] as const;
  expect(labelsPx).toBeLessThanOrEqual(widthPx / 4 + 0.5);
  expect(layout.lanes).toHaveLength(excerpt.lanes.length);
  layout.lanes.forEach((lane, at) => {
    expectInside(lane, canvas);
    const given = excerpt.lanes[at] as ExcerptLane;
    expect(lane.slices.length).toBeGreaterThanOrEqual(given.name.length);
    for (const slice of lane.slices) {
      expectInside(slice, canvas);
      expect(slice.y).toBeGreaterThanOrEqual(lane.y);
      expect(slice.y + slice.height).toBeLessThanOrEqual(lane.y + lane.height);
    }
    for (const label of lane.labels) expect(label.y).toBeLessThan(lane.y + lane.height);
  });
  layout.lanes.reduce((above, lane) => {
    expect(lane.y).toBeGreaterThanOrEqual(above);
    return lane.y + lane.height;
  }, 0);

  expect(layout.event !== null).toBe(subject.event !== null);
  if (layout.event) {
    const { event: box } = layout;
    expectInside(box, canvas);
    expectInside(box.chip, canvas);
    expect(box.width).toBeGreaterThanOrEqual(LEAST_EVENT_PX - ROUNDING_PX);
    const [lane] = layout.lanes;
    expect(box.y).toBeGreaterThanOrEqual(lane?.y ?? Number.NaN);
    expect(box.y + SLICE_PX).toBeLessThanOrEqual((lane?.y ?? 0) + (lane?.height ?? 0));
    expect(box.chip.y + box.chip.height).toBeLessThanOrEqual(lane?.y ?? 0);
  }
  expect(layout.claimed).toHaveLength(subject.claimed.length);
  for (const band of layout.claimed) {
    expectInside(band, canvas);
    expectInside(band.bar, canvas);
    for (const edge of band.edges) expectInside(edge, canvas);
    expect(band.width).toBeGreaterThanOrEqual(LEAST_CLAIMED_PX - ROUNDING_PX);
    expect(band.y + band.height).toBe(heightPx);
  }
  expect(layout.claimedLabel !== null).toBe(subject.claimed.length > 0);
  expect(heightOf(excerpt, subject)).toBe(heightPx);
  return layout;
}

const lane = fc
  .record({
    first_row: fc.nat(20),
    row_count: fc.integer({ min: 1, max: 5 }),
    rows_below: fc.nat(20),
    slices: fc.array(fc.tuple(fc.nat(4), fc.integer({ min: -50, max: 1200 }), fc.nat(1500)), {
      maxLength: 30,
    }),
  })
  .map(({ slices, ...rows }): ExcerptLane => {
    // As the server sends them: they overlap the range, from 0 to 1,000.
    const shown = slices.filter(([, start, length]) => start < 1000 && start + length > 0);
    return {
      ...rows,
      // Levels are left out of lanes with room for the notes only.
      ...(rows.row_count < 3 ? { first_row: 0, rows_below: 0 } : {}),
      track: 1,
      label: 'Main thread',
      names: ['aten::mm'],
      categories: ['cpu'],
      rows: shown.map(
        ([row]) => (rows.row_count < 3 ? 0 : rows.first_row) + (row % rows.row_count),
      ),
      start_ns: shown.map(([, start]) => start),
      end_ns: shown.map(([, start, length]) => start + length),
      name: shown.map(() => 0),
      count: shown.map(() => 1),
    };
  });
const span = fc.tuple(fc.nat(1000), fc.nat(1000)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
const picture = fc.record({
  lanes: fc.array(lane, { minLength: 1, maxLength: 4 }),
  event: fc.option(fc.tuple(span, fc.nat(4)), { nil: null }),
  claimed: fc.array(span, { maxLength: 8 }),
  widthPx: fc.integer({ min: 200, max: 3000 }),
  isOnTrack: fc.boolean(),
});

describe('a picture', () => {
  it('has all that is in the response inside its canvas', () => {
    fc.assert(
      fc.property(picture, ({ lanes, event: at, claimed, widthPx, isOnTrack }) => {
        const [first, ...others] = lanes as [ExcerptLane, ...ExcerptLane[]];
        const [[start, end] = [0, 0], row] = at ?? [[0, 0], 0];
        const subject: Subject = {
          event: at && event({ start_ns: start ?? 0, duration_ns: (end ?? 0) - (start ?? 0) }),
          claimed: claimed.map(([from, to]) => time(from ?? 0, to ?? 0)),
        };
        const excerpt: TimelineExcerpt = {
          schema: 1,
          start_ns: 0,
          end_ns: 1000,
          event: at && {
            row: first.first_row + (row % first.row_count),
            start_ns: start ?? 0,
            end_ns: end ?? 0,
          },
          lanes: [{ ...first, track: isOnTrack ? 1 : null }, ...others],
        };
        check(excerpt, subject, widthPx);
      }),
    );
  });

  it.each([320, 700, 1200])(
    'of a sample is inside %i px, where the event and its time are',
    (width) => {
      const subject = subjectOf(OUTCOME) as Subject;
      const layout = check(EXCERPT, subject, width);
      const xOf = (ns: number): number =>
        layout.labelsPx +
        ((ns - EXCERPT.start_ns) / (EXCERPT.end_ns - EXCERPT.start_ns)) * (width - layout.labelsPx);
      const [cited] = OUTCOME.events;
      const [charged] = subject.claimed;
      expect(cited && charged).toBeTruthy();
      if (!cited || !charged) return;
      expect(layout.event?.x).toBeCloseTo(xOf(cited.start_ns));
      expect(layout.claimed[0]?.x).toBeCloseTo(xOf(charged.start_ns));
      expect(layout.claimed[0]?.width).toBeCloseTo(xOf(charged.end_ns) - xOf(charged.start_ns));
      const slice = layout.lanes[0]?.slices.find(({ name }) => name === cited.name);
      expect([slice?.x, slice?.y]).toEqual([layout.event?.x, layout.event?.y]);
    },
  );

  it('marks an event of no duration at the end with a line to its label', () => {
    const subject: Subject = {
      event: event({ start_ns: EXCERPT.end_ns, duration_ns: 0 }),
      claimed: [],
    };
    const at = { row: 1, start_ns: EXCERPT.end_ns, end_ns: EXCERPT.end_ns };
    const { event: box } = check({ ...EXCERPT, event: at }, subject, 800);
    expect(box?.x).toBeCloseTo(800 - LEAST_EVENT_PX);
    expect(box?.leader && box.leader.y + box.leader.height).toBe(box?.y);
  });

  it('notes the levels that are not drawn', () => {
    const subject: Subject = { event: event(), claimed: [] };
    const [first] = EXCERPT.lanes as [ExcerptLane];
    const cut = { ...first, first_row: 3, row_count: 5, rows_below: 1, rows: [], name: [] };
    const excerpt = { ...EXCERPT, event: { row: 5, start_ns: 0, end_ns: 1 }, lanes: [cut] };
    const { lanes } = layoutOf(excerpt, subject, 800, measure);
    const texts = lanes[0]?.labels.map(({ text }) => text);
    expect(texts).toEqual(['Main thread', '+3 levels above', '+1 level below']);
  });

  it('draws an event on no track in a row with its track’s name', () => {
    const subject: Subject = { event: event({ event: null, track: 'host' }), claimed: [] };
    const [first] = EXCERPT.lanes as [ExcerptLane];
    const own = { ...first, track: null, label: '', first_row: 0, row_count: 1, rows_below: 0 };
    const bare = {
      ...own,
      names: [],
      categories: [],
      rows: [],
      start_ns: [],
      end_ns: [],
      name: [],
    };
    const at = { row: 0, start_ns: 1000, end_ns: 1500 };
    const { lanes } = check({ ...EXCERPT, event: at, lanes: [bare] }, subject, 800);
    expect(lanes[0]?.labels[0]?.text).toBe('Host');
    expect(lanes[0]?.slices.map(({ name }) => name)).toEqual(['aten::mm']);
  });
});

describe('the subject of a picture', () => {
  it('is the first event, and the claimed times', () => {
    const subject = subjectWith([event(), event({ name: 'other' })], [time(1600, 1900)]);
    expect(subject?.event?.name).toBe('aten::mm');
    expect(excerptParameters(subject as Subject)).toEqual({
      event: 3,
      event_time: '1000-1500',
      time: ['1600-1900'],
    });
    expect(extentOf(subject as Subject)).toEqual({ startNs: 1000, endNs: 1900 });
  });

  it('is the claimed time where there is no event', () => {
    const subject = subjectWith([], [time(5, 9)]) as Subject;
    expect(excerptParameters(subject)).toEqual({ event: null, event_time: null, time: ['5-9'] });
  });

  it('is none of a finding without either, or of no trace', () => {
    expect(subjectWith([], [])).toBeNull();
    expect(subjectWith([event()], [], '')).toBeNull();
    expect(subjectOf(outcome({ events: [] }))).toBeNull();
  });

  it('begins with the trace', () => {
    const subject = subjectWith([event({ start_ns: -20, duration_ns: 50 })], []) as Subject;
    expect(excerptParameters(subject).event_time).toBe('0-30');
  });

  it('is what the sample was requested with', () => {
    const {
      event: index,
      event_time,
      time: times,
    } = excerptParameters(subjectOf(OUTCOME) as Subject);
    const query = new URLSearchParams({ event: `${index}`, event_time: `${event_time}` });
    for (const each of times) query.append('time', each);
    expect(asked['timeline-excerpt'].path.split('?')[1]).toBe(`${query}`);
  });

  it('sums the claimed parts without the gaps between', () => {
    const times = [{ ...time(0, 2e6), claimed_ns: 1.5e6 }, time(3e6, 4e6)];
    expect(claimedText(times)).toBe('Claimed: 2.50 ms in 2 parts');
    expect(claimedText(times.slice(1))).toBe('Claimed: 1.00 ms');
  });
});
