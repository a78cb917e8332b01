/** The canvas of the flame graph, with pointer and keyboard. */
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { type Frame, useSurface } from '../../canvas/surface';
import { between, eased, isSameRange, type Range, valueAt } from '../../canvas/viewport';
import { announcementOf } from './labels';
import {
  isSmaller,
  type Layout,
  type Matches,
  NONE,
  type Node,
  nextMatch,
  nodeAt,
  parentOf,
} from './layout';
import { KEYS, moved, rangeOf } from './moves';
import { type Picture, paint, ROW_PX } from './painting';
import { Tooltip, type TooltipAnchor } from './tooltip';

const ZOOM_MS = 180;
/** Rows of callers that stay visible above the zoomed frame. */
const ROWS_ABOVE = 3;

/** The next and the previous search match. */
const MATCH_KEYS: Readonly<Record<string, 1 | -1>> = { n: 1, p: -1 };

interface Props {
  readonly layout: Layout;
  readonly root: Node;
  readonly active: Node;
  readonly marked: string | null;
  readonly matches: Matches | null;
  readonly onActive: (node: Node) => void;
  /** Zooms to a frame; -1: to all. */
  readonly onRoot: (node: Node) => void;
}

interface Zoom {
  readonly from: Range;
  readonly to: Range;
  readonly sinceMs: number;
}

interface View {
  readonly view: Range;
  readonly isMoving: boolean;
}

const isStill = (): boolean => window.matchMedia('(prefers-reduced-motion: reduce)').matches;

/** The visible range, animated from the previous zoom to the next. */
function useView(layout: Layout, root: Node): (nowMs: number) => View {
  const target = rangeOf(layout, root);
  const zoom = useRef<Zoom>({ from: target, to: target, sinceMs: 0 });
  const shown = useRef(layout);
  const at = useRef(target);
  useLayoutEffect(() => {
    const isOther = shown.current !== layout;
    shown.current = layout;
    if (isSameRange(zoom.current.to, target)) return;
    const from = isOther || isStill() ? target : at.current;
    zoom.current = { from, to: target, sinceMs: performance.now() };
  });
  return (nowMs) => {
    const { from, to, sinceMs } = zoom.current;
    const share = Math.max(0, (nowMs - sinceMs) / ZOOM_MS);
    at.current = between(from, to, eased(Math.min(1, share)));
    return { view: at.current, isMoving: share < 1 && !isSameRange(from, to) };
  };
}

/** The node under the pointer. */
function nodeUnder(picture: Picture | null, event: MouseEvent<HTMLElement>): Node {
  if (!picture) return NONE;
  const box = event.currentTarget.getBoundingClientRect();
  const depth = Math.floor((event.clientY - box.top + picture.topPx) / ROW_PX);
  const position = valueAt(picture.view, event.currentTarget.clientWidth, event.clientX - box.left);
  const isInside = depth >= 0 && depth < picture.layout.levels.length - 1;
  return isInside ? nodeAt(picture.layout, depth, position) : NONE;
}

/** Scrolls as little as needed to show a row. */
function reveal(scroller: HTMLElement | null, depth: number): void {
  if (!scroller) return;
  const top = depth * ROW_PX;
  const { scrollTop, clientHeight } = scroller;
  const isSeen = top >= scrollTop && top + 2 * ROW_PX <= scrollTop + clientHeight;
  if (!isSeen) scroller.scrollTop = Math.max(0, top - ROWS_ABOVE * ROW_PX);
}

export function FlameCanvas(props: Props): ReactNode {
  const { layout, root, active, marked, matches, onActive, onRoot } = props;
  const help = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const picture = useRef<Picture | null>(null);
  const [pointed, setPointed] = useState<TooltipAnchor | null>(null);
  const tooltip = pointed?.layout === layout ? pointed : null;
  const viewAt = useView(layout, root);
  const { canvas, redraw } = useSurface((frame: Frame): boolean => {
    const { view, isMoving } = viewAt(frame.nowMs);
    const topPx = scroller.current?.scrollTop ?? 0;
    const hovered = tooltip?.node ?? NONE;
    picture.current = { layout, view, topPx, root, active, hovered, marked, matches };
    paint(frame, picture.current);
    return isMoving;
  });
  useEffect(() => {
    if (root !== NONE) reveal(scroller.current, layout.depth[root] ?? 0);
  }, [layout, root]);

  const point = (event: MouseEvent<HTMLElement>): void => {
    const node = nodeUnder(picture.current, event);
    const { clientX: x, clientY: y } = event;
    setPointed(node === NONE ? null : { layout, node, x, y });
  };
  const choose = (node: Node): void => {
    if (node === NONE) return;
    onRoot(isSmaller(layout, node) ? parentOf(layout, node) : node);
    onActive(node);
  };
  const go = (node: Node): void => {
    setPointed(null);
    onActive(node);
    reveal(scroller.current, layout.depth[node] ?? 0);
  };
  const targetOf = (key: string): Node | null => {
    const move = KEYS[key];
    if (move) return moved(layout, active, move, root);
    const turn = MATCH_KEYS[key];
    return turn && matches ? nextMatch(matches, active, turn) : null;
  };
  const pressed = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const next = targetOf(event.key);
    if (next !== null) go(next);
    else if (event.key === 'Enter') choose(active);
    else if (event.key === 'Escape' && root !== NONE) onRoot(parentOf(layout, root));
    else if (event.key === 'Home') onRoot(NONE);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className="flame-picture">
      <canvas ref={canvas} className="flame-canvas" />
      <div
        ref={scroller}
        className="flame-scroll"
        role="application"
        aria-roledescription="flame graph"
        aria-label="Flame graph"
        aria-describedby={help}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it takes the arrow keys
        tabIndex={0}
        onScroll={() => {
          setPointed(null);
          redraw();
        }}
        onPointerMove={point}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => choose(nodeUnder(picture.current, event))}
        onKeyDown={pressed}
      >
        <div style={{ height: (layout.levels.length + 1) * ROW_PX }} />
      </div>
      <p id={help} className="visually-hidden">
        Arrow keys move to callers, callees and neighbours, n and p between search matches. Enter
        zooms in to the frame, Escape zooms out. The list of functions has the same values.
      </p>
      <p className="visually-hidden" aria-live="polite">
        {active !== NONE && announcementOf(layout, active)}
      </p>
      {tooltip && <Tooltip anchor={tooltip} root={root} />}
    </div>
  );
}
