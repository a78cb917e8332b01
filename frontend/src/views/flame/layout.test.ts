import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FlameGraph } from '../../api/types.gen';
import fixture from './fixture.json';
import {
  changeOf,
  childrenOf,
  firstBehind,
  isSmaller,
  type Layout,
  layoutOf,
  levelOf,
  matchesOf,
  NONE,
  nameOf,
  nextMatch,
  nodeAt,
  parentOf,
  pathTo,
} from './layout';
import { keyOf, moved, nodeOf, pathKeys, rangeOf } from './moves';

interface Drawn {
  readonly name: number;
  readonly own: number;
  readonly before: number;
  readonly below: readonly Drawn[];
}

const DEEPEST = 4;
const drawnTo: fc.Memo<Drawn> = fc.memo((depth) =>
  fc.record({
    name: fc.integer({ min: 0, max: 2 }),
    own: fc.integer({ min: 1, max: 9 }),
    before: fc.integer({ min: 0, max: 9 }),
    below: depth <= 1 ? fc.constant([]) : fc.array(drawnTo(depth - 1), { maxLength: 3 }),
  }),
);
const drawn = drawnTo(DEEPEST);

/** A tree as the API answers: by depth, children of one parent together. */
function graphOf(tops: readonly Drawn[], isCompared = false): FlameGraph {
  const rows: { drawn: Drawn; parent: number }[] = tops.map((node) => ({
    drawn: node,
    parent: -1,
  }));
  for (let at = 0; at < rows.length; at += 1) {
    for (const below of rows[at]?.drawn.below ?? []) rows.push({ drawn: below, parent: at });
  }
  const sum = (of: (node: Drawn) => number): number[] => {
    const total = rows.map(({ drawn: node }) => of(node));
    for (let at = rows.length - 1; at >= 0; at -= 1) {
      const parent = rows[at]?.parent ?? -1;
      if (parent >= 0) total[parent] = (total[parent] ?? 0) + (total[at] ?? 0);
    }
    return total;
  };
  const zeros = rows.map(() => 0);
  return {
    ...(fixture as unknown as FlameGraph),
    names: ['a', 'b', 'c'],
    name_kinds: [0, 0, 0],
    parent: rows.map(({ parent }) => parent),
    name: rows.map(({ drawn: node }) => node.name),
    own: rows.map(({ drawn: node }) => node.own),
    total: sum(({ own }) => own),
    calls: zeros,
    merged_count: zeros,
    before_own: isCompared ? rows.map(({ drawn: node }) => node.before) : [],
    before_total: isCompared ? sum(({ before }) => before) : [],
    before_calls: isCompared ? zeros : [],
  };
}

const layouts = fc
  .tuple(fc.array(drawn, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([tops, isCompared]) => layoutOf(graphOf(tops, isCompared)));
const nodesOf = (layout: Layout): number[] => layout.graph.parent.map((_, node) => node);

describe('the layout', () => {
  it('places children side by side within their parent', () => {
    fc.assert(
      fc.property(layouts, (layout) => {
        for (const node of [NONE, ...nodesOf(layout)]) {
          let at = node === NONE ? 0 : (layout.start[node] ?? 0);
          for (const child of childrenOf(layout, node)) {
            expect(layout.start[child]).toBe(at);
            at = layout.end[child] ?? 0;
          }
          expect(at).toBeLessThanOrEqual(rangeOf(layout, node).end);
        }
        expect(nodesOf(layout).filter((node) => parentOf(layout, node) < 0)).toEqual(
          childrenOf(layout, NONE),
        );
      }),
    );
  });

  it('finds the node at a point, as a linear search does', () => {
    fc.assert(
      fc.property(layouts, fc.integer({ min: 0, max: 400 }), (layout, tenths) => {
        const position = tenths / 10;
        layout.levels.slice(1).forEach((_, depth) => {
          const [first, end] = levelOf(layout, depth);
          const level = nodesOf(layout).slice(first, end);
          const isAt = (node: number): boolean =>
            (layout.start[node] ?? 0) <= position && position < (layout.end[node] ?? 0);
          expect(nodeAt(layout, depth, position)).toBe(level.find(isAt) ?? NONE);
          expect(firstBehind(layout, depth, position)).toBe(
            level.find((node) => (layout.end[node] ?? 0) > position) ?? end,
          );
        });
      }),
    );
  });

  it('counts nested matches once', () => {
    fc.assert(
      fc.property(layouts, (layout) => {
        const matches = matchesOf(layout, (name) => name === 'a');
        const matching = nodesOf(layout).filter((node) => nameOf(layout, node) === 'a');
        const outermost = matching.filter(
          (node) =>
            !pathTo(layout, node)
              .slice(0, -1)
              .some((node) => matching.includes(node)),
        );
        const weight = outermost.reduce(
          (sum, node) => sum + (layout.end[node] ?? 0) - (layout.start[node] ?? 0),
          0,
        );
        expect(matches.count).toBe(matching.length);
        expect(matches.weight).toBe(weight);
      }),
    );
  });

  it('steps through matches cyclically', () => {
    const leaf = (name: number): Drawn => ({ name, own: 1, before: 0, below: [] });
    const layout = layoutOf(graphOf([leaf(0), leaf(1), leaf(0), leaf(2)]));
    const matches = matchesOf(layout, (name) => name === 'a');
    expect([NONE, 0, 1, 2, 3].map((node) => nextMatch(matches, node, 1))).toEqual([0, 2, 2, 0, 0]);
    expect([NONE, 0, 1, 2, 3].map((node) => nextMatch(matches, node, -1))).toEqual([2, 2, 0, 0, 2]);
    const none = matchesOf(layout, () => false);
    expect(nextMatch(none, 1, 1)).toBe(1);
  });

  it('measures a change from gone to new', () => {
    const of = (own: number, before: number): number =>
      changeOf(layoutOf(graphOf([{ name: 0, own, before, below: [] }], true)), 0);
    expect([of(4, 4), of(4, 2), of(2, 4), of(4, 0)]).toEqual([0, 0.5, -0.5, 1]);
  });
});

describe('a path in a URL', () => {
  it('has the server’s encoding', () => {
    expect(keyOf('aten::mm')).toBe('klvtj1');
    expect(keyOf('train.py(7): naïve …')).toBe('1hqc3el');
    expect(keyOf('')).toBe('0');
  });

  it('resolves to its frame if siblings have unique names', () => {
    const layout = layoutOf(fixture as unknown as FlameGraph);
    for (const node of nodesOf(layout)) {
      if (!isSmaller(layout, node)) expect(nodeOf(layout, pathKeys(layout, node))).toBe(node);
    }
  });

  it('resolves as far as it matches', () => {
    const below = [{ name: 1, own: 1, before: 0, below: [] }];
    const layout = layoutOf(graphOf([{ name: 0, own: 1, before: 0, below }]));
    expect(nodeOf(layout, `${keyOf('a')}.${keyOf('c')}`)).toBe(0);
    expect(nodeOf(layout, keyOf('c'))).toBe(NONE);
  });
});

describe('the arrow keys', () => {
  it('move in, out, and to siblings and back', () => {
    fc.assert(
      fc.property(layouts, (layout) => {
        for (const node of nodesOf(layout)) {
          const inside = moved(layout, node, 'in', NONE);
          if (inside !== node) expect(moved(layout, inside, 'out', NONE)).toBe(node);
          const after = moved(layout, node, 'after', NONE);
          if (after !== node) expect(moved(layout, after, 'before', NONE)).toBe(node);
        }
      }),
    );
  });

  it('do not leave the zoomed frame sideways', () => {
    const leaf = (name: number): Drawn => ({ name, own: 1, before: 0, below: [] });
    const tops = [
      { ...leaf(0), below: [leaf(0), leaf(1)] },
      { ...leaf(1), below: [leaf(2)] },
    ];
    const layout = layoutOf(graphOf(tops));
    expect(moved(layout, 3, 'after', NONE)).toBe(4);
    expect(moved(layout, 3, 'after', 0)).toBe(3);
    expect(moved(layout, NONE, 'in', NONE)).toBe(0);
    expect(moved(layout, NONE, 'in', 1)).toBe(1);
  });
});
