import { describe, expect, it } from 'vitest';
import { contrast, fillOf, INK, packed, SHADES, shade, shadeNumber, type Theme } from './colours';

const CATEGORIES =
  'kernel communication memcpy memset runtime dataloader cpu python annotation other alloc post-sync host-stall dispatch queued no-record tail something-new'.split(
    ' ',
  );
const SURFACE: Record<Theme, string> = { light: '#ffffff', dark: '#161a21' };
const THEMES: readonly Theme[] = ['light', 'dark'];

describe.each(THEMES)('fills in the %s theme', (theme) => {
  it.each(CATEGORIES)(
    '%s: words can be read and the fill stands out, in every shade',
    (category) => {
      for (let which = 0; which < SHADES; which += 1) {
        const fill = shade(category, which, theme);
        expect(contrast(fill, INK[theme])).toBeGreaterThanOrEqual(4.5);
        expect(contrast(fill, SURFACE[theme])).toBeGreaterThanOrEqual(3);
      }
    },
  );

  it('differ by name and are the same for the same name', () => {
    const names = ['aten::add', 'aten::mul', 'aten::mm', 'aten::relu', 'aten::copy_', 'aten::to'];
    const fills = names.map((name) => fillOf('cpu', name, theme));
    expect(new Set(fills).size).toBeGreaterThanOrEqual(4);
    expect(names.map((name) => fillOf('cpu', name, theme))).toEqual(fills);
  });
});

it('gives names shades evenly', () => {
  const counts = new Array<number>(SHADES).fill(0);
  for (let at = 0; at < 12_000; at += 1) {
    const which = shadeNumber(`aten::op_${at}`);
    counts[which] = (counts[which] ?? 0) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(250);
});

it('packs red, green, blue and alpha in the order of the machine’s bytes', () => {
  const bytes = new Uint8Array(new Uint32Array([packed('#102030', 0x40)]).buffer);
  expect([...bytes]).toEqual([0x10, 0x20, 0x30, 0x40]);
});
