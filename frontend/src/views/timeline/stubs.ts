/**
 * Labels next to the selected slice that stand for linked slices out of sight: where they are, how far away, and
 * how many. Pure.
 */
import type { TextFitter } from '../../canvas/text';
import { count, duration } from '../../core/format';
import { shortName } from '../../core/names';
import type { Box } from './overlay';
import type { SliceLink } from './wire';

/** A linked slice with the name of its track. */
export interface ShownLink extends SliceLink {
  readonly on: string;
}

export interface Stub extends Box {
  readonly text: string;
  /** The nearest linked slice on this side. */
  readonly link: ShownLink;
  /** For the tooltip. */
  readonly facts: readonly string[];
}

export const STUB_PX = 18;
const GAP_PX = 5;
const EDGE_PX = 2;
const PADDING_PX = 6;
const WIDEST_PX = 260;

interface Screen {
  readonly widthPx: number;
  readonly heightPx: number;
}

type Side = 'earlier' | 'later';

function factsOf(link: ShownLink, fromNs: number, more: number): string[] {
  const ns = Math.abs(link.start_ns - fromNs);
  const way = link.start_ns < fromNs ? 'earlier' : 'later';
  return [
    `${link.kind} · ${duration(ns)} ${way} · ${link.on}`,
    ...(more > 0 ? [`and ${count(more)} more on this side`] : []),
    'Click to show it',
  ];
}

/** The position of a label below a slice, or above it at the lower edge. */
function boxBy(anchor: Box, side: Side, textPx: number, screen: Screen): Box {
  const widthPx = textPx + 2 * PADDING_PX;
  const left = Math.max(0, anchor.x);
  const right = Math.min(screen.widthPx, anchor.x + anchor.widthPx);
  const middle = (left + right) / 2;
  const preferred =
    side === 'later'
      ? Math.max(middle + EDGE_PX, right - widthPx)
      : Math.min(middle - EDGE_PX - widthPx, left);
  const x = Math.max(EDGE_PX, Math.min(screen.widthPx - widthPx - EDGE_PX, preferred));
  const below = anchor.y + anchor.heightPx + GAP_PX;
  const y = below + STUB_PX <= screen.heightPx ? below : anchor.y - GAP_PX - STUB_PX;
  return { x, y, widthPx, heightPx: STUB_PX };
}

const overlaps = (a: Box, b: Box): boolean => a.x < b.x + b.widthPx && b.x < a.x + a.widthPx;

/** One label for the linked slices before the selected one, and one for those after it. */
export function stubsOf(
  links: readonly ShownLink[],
  {
    anchor,
    fromNs,
    fitter,
    screen,
  }: {
    readonly anchor: Box;
    readonly fromNs: number;
    readonly fitter: TextFitter;
    readonly screen: Screen;
  },
): Stub[] {
  const stubs: Stub[] = [];
  for (const side of ['earlier', 'later'] as const) {
    const here = links
      .filter((link) => (side === 'later') === link.start_ns >= fromNs)
      .sort((a, b) => Math.abs(a.start_ns - fromNs) - Math.abs(b.start_ns - fromNs));
    const [link] = here;
    if (!link) continue;
    const more = here.length - 1;
    const rest = more > 0 ? ` +${count(more)}` : '';
    const name = fitter.fit(shortName(link.name), WIDEST_PX - fitter.widthPx(rest));
    const text = side === 'later' ? `${name}${rest} →` : `← ${name}${rest}`;
    const box = boxBy(anchor, side, fitter.widthPx(text), screen);
    const isCovered = stubs.some((other) => overlaps(other, box));
    const y = isCovered ? box.y + STUB_PX + EDGE_PX : box.y;
    stubs.push({ ...box, y, text, link, facts: factsOf(link, fromNs, more) });
  }
  return stubs;
}

/** The label at a point. */
export function stubAt(
  stubs: readonly Stub[],
  { x, y }: { readonly x: number; readonly y: number },
): Stub | null {
  const isOn = (box: Box): boolean =>
    x >= box.x && x < box.x + box.widthPx && y >= box.y && y < box.y + box.heightPx;
  return stubs.find(isOn) ?? null;
}
