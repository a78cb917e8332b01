import fc from 'fast-check';
import { expect, it } from 'vitest';
import { carried } from '../../state/bound_options';
import { parseSettings, type Settings, TABS, toggledIn, withSettings } from './settings';

const ids = fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 6 });
const range = fc
  .tuple(fc.integer({ min: 0, max: 1e12 }), fc.integer({ min: 1, max: 1e9 }))
  .map(([start, length]) => ({ start, end: start + length }));
const settings: fc.Arbitrary<Settings> = fc.record({
  at: fc.option(range, { nil: null }),
  pinned: ids,
  toggled: ids,
  hidden: ids,
  kinds: fc.array(fc.constantFrom('stream', 'thread', 'counter'), { maxLength: 2 }),
  filter: fc.string(),
  order: ids,
  marks: ids,
  tab: fc.constantFrom(...TABS, null),
  isPanelShut: fc.boolean(),
  area: fc.option(
    fc.tuple(range, ids).map(([part, tracks]) => ({ ...part, tracks })),
    { nil: null },
  ),
});

it('settings round-trip through the URL', () => {
  fc.assert(
    fc.property(settings, (expected) => {
      expect(parseSettings(withSettings({}, expected))).toEqual(expected);
    }),
  );
});

it('options of other views are kept, and defaults are not written', () => {
  const options = withSettings({ other: 'kept', pin: '3' }, { pinned: [], marks: [1.4, 20] });
  expect(options).toEqual({ other: 'kept', marks: '1.20' });
});

it('invalid settings are ignored', () => {
  const read = parseSettings({ at: '9-3', pin: 'a.3.-1', tab: 'x', area: '1-' });
  expect(read).toMatchObject({ at: null, pinned: [3], tab: null, area: null });
});

it('toggling twice changes nothing', () => {
  expect(toggledIn([1, 2], 3)).toEqual([1, 2, 3]);
  expect(toggledIn([1, 2, 3], 2)).toEqual([1, 3]);
});

it('settings with tracks and times are not kept for another trace', () => {
  const range = { start: 1, end: 2 };
  const options = withSettings({}, {
    at: range,
    pinned: [1],
    toggled: [2],
    hidden: [3],
    kinds: ['stream'],
    filter: 'main',
    order: [4],
    marks: [5],
    tab: 'search',
    isPanelShut: true,
    area: { ...range, tracks: [6] },
  } satisfies Settings);
  const left = { view: 'timeline', run: 'a', worker: null, span: null, options };
  expect(carried(left, { run: 'b', worker: null, span: null })).toEqual({
    kinds: 'stream',
    tracks: 'main',
    tab: 'search',
    panel: 'shut',
  });
});
