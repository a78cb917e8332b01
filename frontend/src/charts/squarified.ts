/**
 * Squarified treemap: rectangles with areas proportional to values. (Bruls, Huizing, van Wijk,
 * 2000.) Pure.
 */

export interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

interface Strip {
  readonly sum: number;
  readonly least: number;
  readonly most: number;
}

/** The worst aspect ratio of a strip along a side. */
function worst({ sum, least, most }: Strip, side: number): number {
  const square = side * side;
  return Math.max((square * most) / (sum * sum), (sum * sum) / (square * least));
}

/** The end of the best strip that starts at `first`. */
function stripEnd(areas: readonly number[], first: number, side: number): number {
  let strip: Strip = { sum: 0, least: Number.POSITIVE_INFINITY, most: 0 };
  for (let at = first; at < areas.length; at += 1) {
    const area = areas[at] ?? 0;
    const longer = {
      sum: strip.sum + area,
      least: Math.min(strip.least, area),
      most: Math.max(strip.most, area),
    };
    if (at > first && worst(longer, side) > worst(strip, side)) return at;
    strip = longer;
  }
  return areas.length;
}

interface Laid {
  readonly rectangles: readonly Rectangle[];
  readonly rest: Rectangle;
}

/** A strip along the shorter side, and the rest of the box. */
function laid(areas: readonly number[], box: Rectangle): Laid {
  const { left, top, width, height } = box;
  const isWide = width >= height;
  const side = isWide ? height : width;
  const thick = side > 0 ? areas.reduce((sum, area) => sum + area, 0) / side : 0;
  let along = 0;
  const rectangles = areas.map((area) => {
    const long = thick > 0 ? area / thick : 0;
    const at = along;
    along += long;
    return isWide
      ? { left, top: top + at, width: thick, height: long }
      : { left: left + at, top, width: long, height: thick };
  });
  const rest = isWide
    ? { left: left + thick, top, width: Math.max(0, width - thick), height }
    : { left, top: top + thick, width, height: Math.max(0, height - thick) };
  return { rectangles, rest };
}

/** A rectangle for each value, largest first; together they fill the box. */
export function squarified(values: readonly number[], box: Rectangle): Rectangle[] {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (total <= 0 || box.width <= 0 || box.height <= 0) return [];
  const areas = values.map((value) => (value / total) * box.width * box.height);
  const rectangles: Rectangle[] = [];
  let rest = box;
  while (rectangles.length < areas.length) {
    const side = Math.min(rest.width, rest.height);
    const end = side > 0 ? stripEnd(areas, rectangles.length, side) : areas.length;
    const strip = laid(areas.slice(rectangles.length, end), rest);
    rectangles.push(...strip.rectangles);
    rest = strip.rest;
  }
  return rectangles;
}
