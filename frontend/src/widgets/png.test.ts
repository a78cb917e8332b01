import fc from 'fast-check';
import { expect, it } from 'vitest';
import { gradientOf, laidOut, standalone } from './png';

const entry = fc.record({ label: fc.string({ maxLength: 30 }), colour: fc.constant('#123456') });

it('lays a legend out in lines no wider than the picture, in order, with nothing lost', () => {
  const widthOf = (label: string): number => label.length * 7;
  fc.assert(
    fc.property(fc.array(entry), fc.integer({ min: 300, max: 2000 }), (legend, width) => {
      const placed = laidOut(legend, width, widthOf);
      expect(placed.map(({ label }) => label)).toEqual(legend.map(({ label }) => label));
      for (const { label, x } of placed) expect(x + 34 + widthOf(label)).toBeLessThanOrEqual(width);
      const lines = placed.map(({ line }) => line);
      expect(lines).toEqual([...lines].sort((a, b) => a - b));
      const starts = new Set(placed.map(({ x, line }) => `${line} ${x}`));
      expect(starts.size).toBe(placed.length);
    }),
  );
});

it('writes an SVG’s styles into it, since alone it knows none of the page’s', () => {
  document.body.innerHTML =
    '<style>.bar { fill: rgb(1, 2, 3) }</style><svg><rect class="bar"></rect></svg>';
  const svg = document.querySelector('svg') as SVGSVGElement;
  expect(standalone(svg)).toContain('rgb(1, 2, 3)');
  expect(svg.outerHTML).not.toContain('rgb(1, 2, 3)');
  document.body.innerHTML = '';
});

it('reads a plain gradient as browsers write it out, and no other image', () => {
  expect(
    gradientOf('linear-gradient(90deg, rgb(1, 2, 3) 0%, rgb(4, 5, 6) 25%, rgb(7, 8, 9) 100%)'),
  ).toEqual({
    isAcross: true,
    stops: [
      { colour: 'rgb(1, 2, 3)', at: 0 },
      { colour: 'rgb(4, 5, 6)', at: 0.25 },
      { colour: 'rgb(7, 8, 9)', at: 1 },
    ],
  });
  expect(gradientOf('linear-gradient(rgb(0, 0, 0), rgba(1, 1, 1, 0.5), rgb(2, 2, 2))')).toEqual({
    isAcross: false,
    stops: [
      { colour: 'rgb(0, 0, 0)', at: 0 },
      { colour: 'rgba(1, 1, 1, 0.5)', at: 0.5 },
      { colour: 'rgb(2, 2, 2)', at: 1 },
    ],
  });
  expect(gradientOf('none')).toBeNull();
  expect(gradientOf('url("x.png")')).toBeNull();
});
