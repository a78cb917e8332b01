import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { useSurface } from '../../../canvas/surface';
import type { Range } from '../../../canvas/viewport';
import { quantityExact } from '../../../core/format';
import { themeStore } from '../../../host/theme';
import { HeatPainter } from './draw';
import { figure } from './grid';
import {
  heightOf,
  type Layout,
  layoutOf,
  type Place,
  placeAt,
  revealedLine,
  withinLines,
  zoomedLines,
} from './layout';
import { useLinesShown } from './lines_shown';
import type { Cells } from './raster';
import { packedRamp, ramp } from './scale';
import { cellWords } from './words';

interface Props {
  readonly cells: Cells;
  readonly steps: RankSteps;
  /** Rows of ranks that come late. */
  readonly late: ReadonlySet<number>;
  readonly chosenRow: number | null;
  readonly chosenStep: number | null;
  readonly onChoose: (row: number, step: number) => void;
  /** What stands below it while no key moves in it. */
  readonly children?: ReactNode;
}

const ZOOM = 1.25;
const DRAG_PX = 4;

const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-16, 0],
  PageDown: [16, 0],
  Home: [0, Number.NEGATIVE_INFINITY],
  End: [0, Number.POSITIVE_INFINITY],
};

const within = (value: number, count: number): number => Math.min(count - 1, Math.max(0, value));

interface Keyed {
  readonly from: Place | null;
  readonly begin: Place;
  readonly lines: number;
  readonly columns: number;
}

/** Where a key leads; the first one only shows where that begins. Undefined: it is no key of these. */
function movedBy(key: string, { from, begin, lines, columns }: Keyed): Place | undefined {
  const move = MOVES[key];
  if (!move) return undefined;
  if (!from) return begin;
  return {
    line: within(from.line + move[0], lines),
    column: within(from.column + move[1], columns),
  };
}

function zoomedBy(key: string, view: Range, line: number, count: number): Range | undefined {
  if (key === '+' || key === '=') return zoomedLines(view, line, 1 / ZOOM, count);
  if (key === '-') return zoomedLines(view, line, ZOOM, count);
  return key === '0' ? { start: 0, end: count } : undefined;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

interface TipProps {
  readonly at: Point;
  readonly widthPx: number;
  readonly words: readonly string[];
}

function Tip({ at, widthPx, words }: TipProps): ReactNode {
  const side = at.x > widthPx / 2 ? { right: widthPx - at.x + 14 } : { left: at.x + 14 };
  const [head, ...others] = words;
  return (
    <div className="heat-tip" style={{ ...side, top: at.y + 12 }} aria-hidden="true">
      <strong>{head}</strong>
      {others.map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}

interface ZoomProps {
  readonly view: Range;
  readonly count: number;
  readonly show: (view: Range) => void;
}

function Zoom({ view, count, show }: ZoomProps): ReactNode {
  const isAll = view.end - view.start >= count;
  return (
    <div className="heat-zoom">
      <button
        type="button"
        className="button quiet square"
        title="Fewer ranks, higher (+, or Ctrl and wheel)"
        aria-label="Show fewer ranks"
        onClick={() => show(zoomedLines(view, view.start, 1 / (ZOOM * ZOOM), count))}
      >
        +
      </button>
      <button
        type="button"
        className="button quiet square"
        title="More ranks, lower (−)"
        aria-label="Show more ranks"
        disabled={isAll}
        onClick={() => show(zoomedLines(view, view.start, ZOOM * ZOOM, count))}
      >
        −
      </button>
      {!isAll && (
        <button
          type="button"
          className="button quiet"
          onClick={() => show({ start: 0, end: count })}
        >
          All ranks
        </button>
      )}
    </div>
  );
}

/** A listener of our own for the wheel: React's cannot keep the page from scrolling. */
function useWheel(
  canvas: React.RefObject<HTMLCanvasElement | null>,
  turned: (event: WheelEvent) => void,
): void {
  const latest = useRef(turned);
  latest.current = turned;
  useEffect(() => {
    const element = canvas.current;
    const heard = (event: WheelEvent): void => latest.current(event);
    element?.addEventListener('wheel', heard, { passive: false });
    return () => element?.removeEventListener('wheel', heard);
  }, [canvas]);
}

/** Every rank and step as a cell of colour: wheel with Ctrl zooms into ranks, drag moves, click chooses. */
export function HeatMap(props: Props): ReactNode {
  const { cells, steps, late, chosenRow, chosenStep, onChoose } = props;
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const colours = useMemo(
    () => packedRamp(ramp(cells.scale.isDiverging, theme, cells.isHighBad)),
    [cells.scale.isDiverging, theme, cells.isHighBad],
  );
  const count = cells.lines.length;
  const { columns } = cells.grid;
  const [view, show] = useLinesShown(count);
  const [pointer, setPointer] = useState<Point | null>(null);
  const [cursor, setCursor] = useState<Place | null>(null);
  const [painter] = useState(() => new HeatPainter());
  const dragged = useRef<{ y: number; start: number; isMoved: boolean } | null>(null);
  const chosenColumn = chosenStep === null ? null : steps.steps.indexOf(chosenStep);
  const { canvas } = useSurface((frame) => {
    const places = [cursor, pointed()];
    painter.draw(frame, { cells, steps, view, colours, late, places, chosenRow, chosenColumn });
    return false;
  });

  const widthPx = (): number => canvas.current?.clientWidth ?? 1;
  const layout = (): Layout => {
    const heightPx = canvas.current?.clientHeight ?? 1;
    return layoutOf({ widthPx: widthPx(), heightPx }, view, columns);
  };
  /** The cell under the pointer, which may have been moved there by a turn of the wheel. */
  const pointed = (): Place | null => {
    const place = pointer && placeAt(layout(), view, pointer);
    return place && place.line < count ? place : null;
  };
  const pointOf = (event: { clientX: number; clientY: number }): Point => {
    const box = canvas.current?.getBoundingClientRect();
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
  };
  const length = view.end - view.start;

  useWheel(canvas, (event) => {
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && length >= count) return;
    event.preventDefault();
    if (isZoom) {
      const at = placeAt(layout(), view, pointOf(event))?.line ?? view.start;
      show(zoomedLines(view, at, event.deltaY > 0 ? ZOOM : 1 / ZOOM, count));
    } else show(withinLines(view.start + event.deltaY / layout().linePx, length, count));
  });

  const choose = (place: Place | null): void => {
    const line = place ? cells.lines[place.line] : undefined;
    const step = place ? steps.steps[place.column] : undefined;
    if (line?.kind === 'rank' && step !== undefined) onChoose(line.row, step);
  };
  const onPointerDown = (event: PointerEvent<HTMLCanvasElement>): void => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    dragged.current = { y: pointOf(event).y, start: view.start, isMoved: false };
  };
  const onPointerMove = (event: PointerEvent): void => {
    const point = pointOf(event);
    const drag = dragged.current;
    if (drag && (drag.isMoved || Math.abs(point.y - drag.y) > DRAG_PX)) {
      drag.isMoved = true;
      setPointer(null);
      show(withinLines(drag.start + (drag.y - point.y) / layout().linePx, length, count));
      return;
    }
    setPointer(point);
  };
  const onPointerUp = (event: PointerEvent): void => {
    const wasPressed = dragged.current !== null && !dragged.current.isMoved;
    dragged.current = null;
    if (wasPressed) choose(placeAt(layout(), view, pointOf(event)));
  };
  const toCell = (cell: Place): void => {
    setCursor(cell);
    const next = revealedLine(view, cell.line, count);
    if (next !== view) show(next);
  };
  const chosenPlace = (): Place | null => {
    const line = cells.lines.findIndex((each) => each.kind === 'rank' && each.row === chosenRow);
    if (line < 0 || chosenColumn === null || chosenColumn < 0) return null;
    return { line, column: chosenColumn };
  };
  /** What a key does; undefined: nothing. */
  const keyed = (key: string): (() => void) | undefined => {
    const begin = { line: Math.ceil(view.start), column: 0 };
    const from = cursor ?? chosenPlace();
    const cell = movedBy(key, { from, begin, lines: count, columns });
    if (cell) return () => toCell(cell);
    const zoomed = zoomedBy(key, view, (from ?? begin).line, count);
    if (zoomed) return () => show(zoomed);
    if (key === 'Escape' && cursor) return () => setCursor(null);
    if (key !== 'Enter' && key !== ' ') return undefined;
    return () => {
      choose(cursor);
      setCursor(null);
    };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const act = keyed(event.key);
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  };
  const place = pointed();
  const words = place ? cellWords(cells, steps, place) : [];
  return (
    <div className="heat">
      <canvas
        ref={canvas}
        className="heat-canvas"
        tabIndex={0}
        role="img"
        aria-label={`${steps.label} of ${cells.grid.rows} ranks in ${columns} steps. Arrow keys move, Enter chooses; the table below says the same.`}
        style={{ height: heightOf(count) }}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={() => {
          dragged.current = null;
        }}
        onPointerLeave={() => setPointer(null)}
        onDoubleClick={() => show({ start: 0, end: count })}
        onKeyDown={onKeyDown}
        onBlur={() => setCursor(null)}
      />
      {pointer && words.length > 0 && <Tip at={pointer} widthPx={widthPx()} words={words} />}
      <div className="heat-foot">
        <p role="status" className={cursor ? '' : 'visually-hidden'}>
          {cursor && cellWords(cells, steps, cursor).join('. ')}
          {cursor && <Exact cells={cells} steps={steps} place={cursor} />}
        </p>
        {cursor === null && props.children}
        <span className="space" />
        {count > 8 && <Zoom view={view} count={count} show={show} />}
      </div>
    </div>
  );
}

interface ExactProps {
  readonly cells: Cells;
  readonly steps: RankSteps;
  readonly place: Place;
}

function Exact({ cells, steps, place }: ExactProps): ReactNode {
  const line = cells.lines[place.line];
  const value =
    line?.kind === 'rank' ? figure(cells.grid, line.row, place.column, 'absolute') : NaN;
  if (Number.isNaN(value)) return null;
  return <span className="muted"> ({quantityExact(value, steps.unit)})</span>;
}
