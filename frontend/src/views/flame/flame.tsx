/** The flame graph itself: a canvas, with the pointer and the keyboard on what scrolls before it. */
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
import { Tooltip, type TooltipPlace } from './tooltip';
import { spokenOf } from './words';

const ZOOM_MS = 180;
/** So many callers stay in sight above the frame that fills the picture. */
const ROWS_ABOVE = 3;

/** To the next match of the search, and to the one before. */
const MATCH_KEYS: Readonly<Record<string, 1 | -1>> = { n: 1, p: -1 };

interface Props {
  readonly layout: Layout;
  readonly root: Node;
  readonly active: Node;
  readonly marked: string | null;
  readonly matches: Matches | null;
  readonly onActive: (node: Node) => void;
  /** A frame is to fill the picture; -1: all are. */
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

/** What is in sight: on its way from the frame before to the one that fills the picture. */
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

/** Where the pointer is, as a node. */
function nodeUnder(picture: Picture | null, event: MouseEvent<HTMLElement>): Node {
  if (!picture) return NONE;
  const box = event.currentTarget.getBoundingClientRect();
  const depth = Math.floor((event.clientY - box.top + picture.topPx) / ROW_PX);
  const place = valueAt(picture.view, event.currentTarget.clientWidth, event.clientX - box.left);
  const isInside = depth >= 0 && depth < picture.layout.levels.length - 1;
  return isInside ? nodeAt(picture.layout, depth, place) : NONE;
}

/** Scrolls no further than is needed to have a row in sight. */
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
  const [pointed, setPointed] = useState<TooltipPlace | null>(null);
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
  const ledTo = (key: string): Node | null => {
    const way = KEYS[key];
    if (way) return moved(layout, active, way, root);
    const turn = MATCH_KEYS[key];
    return turn && matches ? nextMatch(matches, active, turn) : null;
  };
  const pressed = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const next = ledTo(event.key);
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
        Arrow keys lead to callers, to what is called and to neighbours, n and p to what the search
        finds. Enter fills the picture with the frame, Escape leads back out. The list of functions
        says the same in words.
      </p>
      <p className="visually-hidden" aria-live="polite">
        {active !== NONE && spokenOf(layout, active)}
      </p>
      {tooltip && <Tooltip place={tooltip} root={root} />}
    </div>
  );
}
