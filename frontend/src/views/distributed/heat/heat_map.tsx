import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { useSurface } from '../../../canvas/surface';
import type { Range } from '../../../canvas/viewport';
import { quantityExact } from '../../../core/format';
import { useTheme } from '../../../host/theme';
import { useNavigation } from '../../../state/navigation';
import { withOptions } from '../../../state/option';
import { Button } from '../../../widgets/button';
import { HeatPainter } from './draw';
import { figure } from './grid';
import { cellLabels } from './labels';
import {
  type Cell,
  cellAt,
  clampedLines,
  heightOf,
  type Layout,
  layoutOf,
  linesFrom,
  revealedLine,
  zoomedLines,
} from './layout';
import type { Cells } from './raster';
import { packedRamp, ramp } from './scale';

interface Props {
  readonly cells: Cells;
  readonly steps: RankSteps;
  /** Rows of ranks that come late. */
  readonly late: ReadonlySet<number>;
  readonly selectedRow: number | null;
  readonly selectedStep: number | null;
  readonly onChoose: (row: number, step: number) => void;
  /** Shown below while no cell is focused. */
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

const clampedIndex = (value: number, count: number): number =>
  Math.min(count - 1, Math.max(0, value));

interface KeyContext {
  readonly from: Cell | null;
  readonly begin: Cell;
  readonly lines: number;
  readonly columns: number;
}

/** The cell that a key moves to; the first key press shows the start. Undefined for other keys. */
function movedBy(key: string, { from, begin, lines, columns }: KeyContext): Cell | undefined {
  const move = MOVES[key];
  if (!move) return undefined;
  if (!from) return begin;
  return {
    line: clampedIndex(from.line + move[0], lines),
    column: clampedIndex(from.column + move[1], columns),
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
  readonly lines: readonly string[];
}

function Tip({ at, widthPx, lines }: TipProps): ReactNode {
  const side = at.x > widthPx / 2 ? { right: widthPx - at.x + 14 } : { left: at.x + 14 };
  const [head, ...others] = lines;
  return (
    <div className="heat-tip tip popup" style={{ ...side, top: at.y + 12 }} aria-hidden="true">
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
      <Button
        quiet
        square
        title="Zoom in to fewer ranks (+, or Ctrl and wheel)"
        aria-label="Show fewer ranks"
        onClick={() => show(zoomedLines(view, view.start, 1 / (ZOOM * ZOOM), count))}
      >
        +
      </Button>
      <Button
        quiet
        square
        title="Zoom out to more ranks (−)"
        aria-label="Show more ranks"
        disabled={isAll}
        onClick={() => show(zoomedLines(view, view.start, ZOOM * ZOOM, count))}
      >
        −
      </Button>
      {!isAll && (
        <Button quiet onClick={() => show({ start: 0, end: count })}>
          All ranks
        </Button>
      )}
    </div>
  );
}

/** A wheel listener that can prevent scrolling; that of React cannot. */
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

const REST_MS = 250;

/** The visible lines: they follow the pointer at once, and go to the URL once it rests. */
function useLinesShown(count: number): readonly [Range, (view: Range) => void] {
  const { location, go } = useNavigation();
  const urlText = location.options.lines;
  const [view, setView] = useState(() => linesFrom(urlText, count));
  const lastText = useRef(urlText);
  const timer = useRef(0);
  const options = useRef(location.options);
  options.current = location.options;
  const lines = useRef(count);
  useEffect(() => {
    if (urlText === lastText.current && lines.current === count) return;
    lastText.current = urlText;
    lines.current = count;
    setView(linesFrom(urlText, count));
  }, [urlText, count]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const show = (next: Range): void => {
    setView(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const isAll = next.end - next.start >= count;
      lastText.current = isAll ? undefined : `${Math.round(next.start)}-${Math.round(next.end)}`;
      go({ options: withOptions(options.current, { lines: lastText.current ?? null }) }, 'replace');
    }, REST_MS);
  };
  return [clampedLines(view.start, Math.min(view.end - view.start, count), count), show];
}

/** A coloured cell for every rank and step: Ctrl + wheel zooms, drag pans, click selects. */
export function HeatMap(props: Props): ReactNode {
  const { cells, steps, late, selectedRow, selectedStep, onChoose } = props;
  const theme = useTheme();
  const colours = useMemo(
    () => packedRamp(ramp(cells.scale.isDiverging, theme, cells.isHighBad)),
    [cells.scale.isDiverging, theme, cells.isHighBad],
  );
  const count = cells.lines.length;
  const { columns } = cells.grid;
  const [view, show] = useLinesShown(count);
  const [pointer, setPointer] = useState<Point | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [painter] = useState(() => new HeatPainter());
  const dragged = useRef<{ y: number; start: number; isMoved: boolean } | null>(null);
  const selectedColumn = selectedStep === null ? null : steps.steps.indexOf(selectedStep);
  const { canvas } = useSurface((frame) => {
    const outlined = [cursor, pointed()];
    painter.draw(frame, {
      cells,
      steps,
      view,
      colours,
      late,
      outlined,
      selectedRow,
      selectedColumn,
    });
    return false;
  });

  const widthPx = (): number => canvas.current?.clientWidth ?? 1;
  const layout = (): Layout => {
    const heightPx = canvas.current?.clientHeight ?? 1;
    return layoutOf({ widthPx: widthPx(), heightPx }, view, columns);
  };
  /** The cell under the pointer in the current view. */
  const pointed = (): Cell | null => {
    const cell = pointer && cellAt(layout(), view, pointer);
    return cell && cell.line < count ? cell : null;
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
      const at = cellAt(layout(), view, pointOf(event))?.line ?? view.start;
      show(zoomedLines(view, at, event.deltaY > 0 ? ZOOM : 1 / ZOOM, count));
    } else show(clampedLines(view.start + event.deltaY / layout().linePx, length, count));
  });

  const choose = (cell: Cell | null): void => {
    const line = cell ? cells.lines[cell.line] : undefined;
    const step = cell ? steps.steps[cell.column] : undefined;
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
      show(clampedLines(drag.start + (drag.y - point.y) / layout().linePx, length, count));
      return;
    }
    setPointer(point);
  };
  const onPointerUp = (event: PointerEvent): void => {
    const wasPressed = dragged.current !== null && !dragged.current.isMoved;
    dragged.current = null;
    if (wasPressed) choose(cellAt(layout(), view, pointOf(event)));
  };
  const toCell = (cell: Cell): void => {
    setCursor(cell);
    const next = revealedLine(view, cell.line, count);
    if (next !== view) show(next);
  };
  const selectedCell = (): Cell | null => {
    const line = cells.lines.findIndex((line) => line.kind === 'rank' && line.row === selectedRow);
    if (line < 0 || selectedColumn === null || selectedColumn < 0) return null;
    return { line, column: selectedColumn };
  };
  /** The action of a key. */
  const keyed = (key: string): (() => void) | undefined => {
    const begin = { line: Math.ceil(view.start), column: 0 };
    const from = cursor ?? selectedCell();
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
  const cell = pointed();
  const lines = cell ? cellLabels(cells, steps, cell) : [];
  return (
    <div className="heat">
      <canvas
        ref={canvas}
        className="heat-canvas"
        tabIndex={0}
        role="img"
        aria-label={`${steps.label} of ${cells.grid.rows} ranks in ${columns} steps. Arrow keys move, Enter selects; the table below has the same values.`}
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
      {pointer && lines.length > 0 && <Tip at={pointer} widthPx={widthPx()} lines={lines} />}
      <div className="heat-foot flex">
        <p role="status" className={cursor ? '' : 'visually-hidden'}>
          {cursor && cellLabels(cells, steps, cursor).join('. ')}
          {cursor && <Exact cells={cells} steps={steps} cell={cursor} />}
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
  readonly cell: Cell;
}

function Exact({ cells, steps, cell }: ExactProps): ReactNode {
  const line = cells.lines[cell.line];
  const value = line?.kind === 'rank' ? figure(cells.grid, line.row, cell.column, 'absolute') : NaN;
  if (Number.isNaN(value)) return null;
  return <span className="muted"> ({quantityExact(value, steps.unit)})</span>;
}
