import { describe, expect, it } from 'vitest';
import { TextFitter } from '../../canvas/text';
import { type ShownLink, STUB_PX, stubAt, stubsOf } from './stubs';

const fitter = new TextFitter((text) => 7 * text.length);
const screen = { widthPx: 1000, heightPx: 400 };
const link = (start_ns: number, patch: Partial<ShownLink> = {}): ShownLink => ({
  name: `gemm ${start_ns}`,
  category: 'kernel',
  track: 2,
  row: 0,
  start_ns,
  duration_ns: 10,
  event: start_ns,
  kind: 'launches',
  on: 'GPU 0, Stream 7',
  ...patch,
});
const shown = (
  links: readonly ShownLink[],
  anchor = { x: 400, y: 100, widthPx: 10, heightPx: 17 },
) => stubsOf(links, { anchor, fromNs: 1000, fitter, screen });

describe('labels of linked slices out of sight', () => {
  it('name the nearest on each side, and count the others', () => {
    const stubs = shown([link(9000), link(2000), link(10), link(3000)]);
    expect(stubs.map(({ text }) => text)).toEqual(['← gemm 10', 'gemm 2000 +2 →']);
    expect(stubs.map((stub) => stub.link.event)).toEqual([10, 2000]);
    expect(stubs[1]?.facts).toEqual([
      'launches · 1.00 µs later · GPU 0, Stream 7',
      'and 2 more on this side',
      'Click to show it',
    ]);
    expect(shown([])).toEqual([]);
  });

  it('are below the slice, on the side of the time, and inside the picture', () => {
    const [earlier, later] = shown([link(10), link(2000)]);
    expect((earlier?.x ?? 0) + (earlier?.widthPx ?? 0)).toBeLessThan(406);
    expect(later?.x).toBeGreaterThan(404);
    expect(later?.y).toBe(122);
    const [edge] = shown([link(2000)], { x: 990, y: 390, widthPx: 300, heightPx: 17 });
    expect((edge?.x ?? 0) + (edge?.widthPx ?? 0)).toBeLessThanOrEqual(screen.widthPx);
    expect((edge?.y ?? 0) + STUB_PX).toBeLessThanOrEqual(390);
  });

  it('do not cover each other at an edge', () => {
    const [earlier, later] = shown([link(10), link(2000)], {
      x: 0,
      y: 100,
      widthPx: 4,
      heightPx: 17,
    });
    expect(later?.y).toBeGreaterThanOrEqual((earlier?.y ?? 0) + STUB_PX);
  });

  it('are found by the pointer', () => {
    const [stub] = shown([link(2000)]);
    const at = { x: (stub?.x ?? 0) + 3, y: (stub?.y ?? 0) + 3 };
    expect(stubAt(stub ? [stub] : [], at)).toBe(stub);
    expect(stubAt(stub ? [stub] : [], { x: at.x, y: at.y - 10 })).toBeNull();
  });
});
