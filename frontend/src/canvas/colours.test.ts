import { describe, expect, it } from 'vitest';
import { colourOf } from '../core/colour';
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

type Vector = readonly [number, number, number];
type Matrix = readonly [Vector, Vector, Vector];

const times = (matrix: Matrix, [x, y, z]: Vector): Vector => {
  const [a, b, c] = matrix.map((row) => row[0] * x + row[1] * y + row[2] * z);
  return [a ?? 0, b ?? 0, c ?? 0];
};

/** Severe colour blindness on linear RGB (Machado, Oliveira and Fernandes, 2009). */
const SIGHT: Readonly<Record<string, Matrix>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const TO_CONES: Matrix = [
  [0.4122214708, 0.5363325363, 0.0514459929],
  [0.2119034982, 0.6806995451, 0.1073969566],
  [0.0883024619, 0.2817188376, 0.6299787005],
];
const TO_LAB: Matrix = [
  [0.2104542553, 0.793617785, -0.0040720468],
  [1.9779984951, -2.428592205, 0.4505937099],
  [0.0259040371, 0.7827717662, -0.808675766],
];

function linearRgb(hex: string): Vector {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return [r, g, b];
}

/** The colour in OKLab, in which distances of 0.02 are just visible, as someone sees it. */
function seen(hex: string, sight: Matrix): Vector {
  const [r, g, b] = times(sight, linearRgb(hex)).map((part) => Math.min(1, Math.max(0, part)));
  const [long, middle, short] = times(TO_CONES, [r ?? 0, g ?? 0, b ?? 0]).map(Math.cbrt);
  return times(TO_LAB, [long ?? 0, middle ?? 0, short ?? 0]);
}

describe.each(Object.entries(SIGHT))('categories that meet, in %s', (_, sight) => {
  const least = (categories: readonly string[], drawn: (category: string) => string): number => {
    const colours = categories.map((category) => seen(drawn(category), sight));
    const distances = colours.flatMap((a, at) =>
      colours.slice(at + 1).map((b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])),
    );
    return Math.min(...distances);
  };
  const drawings = [
    colourOf,
    ...THEMES.map((theme) => (category: string) => shade(category, 0, theme)),
  ];

  it.each([
    ['in a step', 'kernel communication memcpy runtime dataloader cpu python annotation', 0.04],
    ['among idle causes', 'dataloader host-stall queued dispatch post-sync', 0.05],
    ['on a device', 'kernel communication memcpy memset device-annotation', 0.04],
  ])('%s, differ visibly', (_subject, categories, most) => {
    for (const drawn of drawings) {
      expect(least(categories.split(' '), drawn)).toBeGreaterThanOrEqual(most);
    }
  });
});
