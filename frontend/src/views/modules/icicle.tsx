import { type PointerEvent, type ReactNode, useMemo, useState } from 'react';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { share } from '../../core/format';
import type { Tree } from './tree';

export interface Box {
  readonly at: number;
  readonly left: number;
  readonly width: number;
  readonly row: number;
}

const LEAST_WIDTH = 0.0004;

/** The boxes of the modules, width 1 in total; boxes too narrow to see are left out with their children. */
export function boxesOf(
  tree: Tree,
  roots: readonly number[],
  value: (at: number) => number,
): Box[] {
  const total = roots.reduce((sum, at) => sum + value(at), 0);
  if (total <= 0) return [];
  const boxes: Box[] = [];
  const pending: Box[] = [];
  const layOut = (rows: readonly number[], left: number, row: number): void => {
    let from = left;
    for (const at of rows.toSorted((a, b) => value(b) - value(a) || a - b)) {
      const width = value(at) / total;
      if (width >= LEAST_WIDTH) pending.push({ at, left: from, width, row });
      from += width;
    }
  };
  layOut(roots, 0, 0);
  for (let box = pending.pop(); box; box = pending.pop()) {
    boxes.push(box);
    layOut(tree.children[box.at] ?? [], box.left, box.row + 1);
  }
  return boxes;
}

/** The box at a position from 0 to 1. */
export const boxAt = (boxes: readonly Box[], x: number, row: number): Box | undefined =>
  boxes.find((box) => box.row === row && x >= box.left && x < box.left + box.width);

const ROW_PX = 20;
const MOST_ROWS = 14;
const LEAST_LABEL_PX = 26;

interface Props {
  readonly tree: Tree;
  /** The modules that fill the width together. */
  readonly roots: readonly number[];
  readonly value: (at: number) => number;
  readonly nameOf: (at: number) => string;
  /** The class, which decides the colour. */
  readonly classOf: (at: number) => string;
  readonly textOf: (at: number) => string;
  readonly selected: number | null;
  readonly hits: ReadonlySet<number> | null;
  readonly onSelect: (at: number) => void;
  readonly onZoom: (at: number | null) => void;
}

interface Hover {
  readonly box: Box;
  readonly x: number;
  readonly y: number;
}

function paintBox(frame: Frame, box: Box, props: Props, hovered: number | null): void {
  const { context, widthPx, theme, tokens } = frame;
  const { selected, hits, nameOf, classOf } = props;
  const left = box.left * widthPx;
  const width = Math.max(1, box.width * widthPx - 1);
  const top = box.row * ROW_PX;
  const isDimmed = hits !== null && !hits.has(box.at);
  context.globalAlpha = isDimmed ? 0.3 : 1;
  context.fillStyle = fillOf(classOf(box.at), classOf(box.at), theme);
  context.fillRect(left, top, width, ROW_PX - 1);
  if (box.at === hovered) {
    context.fillStyle = theme === 'dark' ? 'rgb(255 255 255 / 0.2)' : 'rgb(255 255 255 / 0.16)';
    context.fillRect(left, top, width, ROW_PX - 1);
  }
  if (width >= LEAST_LABEL_PX) {
    const font = `12px ${tokens.sans}`;
    context.font = font;
    context.globalAlpha = 1;
    context.fillStyle = isDimmed ? tokens.muted : INK[theme];
    context.textBaseline = 'middle';
    const text = fitterOf(context, font).fit(nameOf(box.at), width - 8);
    context.fillText(text, left + 4, top + ROW_PX / 2);
  }
  context.globalAlpha = 1;
  if (box.at !== selected) return;
  context.lineWidth = 2;
  context.strokeStyle = tokens.surface;
  context.strokeRect(left + 2.5, top + 2.5, Math.max(1, width - 5), ROW_PX - 6);
  context.strokeStyle = tokens.text;
  context.strokeRect(left + 1, top + 1, Math.max(1, width - 2), ROW_PX - 3);
}

/** An icicle chart of the modules by cost, callers above. */
export function Icicle(props: Props): ReactNode {
  const { tree, roots, value, textOf, onSelect, onZoom } = props;
  const boxes = useMemo(() => boxesOf(tree, roots, value), [tree, roots, value]);
  const rowCount = boxes.reduce((most, box) => Math.max(most, box.row + 1), 0);
  const [hover, setHover] = useState<Hover | null>(null);
  const { canvas } = useSurface((frame) => {
    for (const box of boxes) paintBox(frame, box, props, hover?.box.at ?? null);
    return false;
  });
  const hoverAt = (
    event: PointerEvent<HTMLElement> | React.MouseEvent<HTMLElement>,
  ): Hover | null => {
    const { left, top, width } = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const box = boxAt(boxes, x / width, Math.floor(y / ROW_PX));
    return box ? { box, x, y } : null;
  };
  if (boxes.length === 0) {
    return <p className="muted">No module has a cost in this measure.</p>;
  }
  const part = hover ? hover.box.width : 0;
  return (
    <div className="icicle" style={{ maxHeight: MOST_ROWS * ROW_PX }}>
      <canvas
        ref={canvas}
        className="icicle-canvas"
        style={{ height: rowCount * ROW_PX }}
        role="img"
        aria-label="Modules by cost; the table below has the same values"
        onPointerMove={(event) => setHover(hoverAt(event))}
        onPointerLeave={() => setHover(null)}
        onClick={(event) => {
          const at = hoverAt(event)?.box.at;
          if (at !== undefined) onSelect(at);
        }}
        onDoubleClick={(event) => onZoom(hoverAt(event)?.box.at ?? null)}
      />
      {hover && (
        <div
          className={hover.box.left > 0.6 ? 'icicle-tip tip popup on-left' : 'icicle-tip tip popup'}
          style={{ left: hover.x, top: hover.y }}
        >
          <strong>{props.nameOf(hover.box.at)}</strong>
          <span>
            {textOf(hover.box.at)}, {share(part)} of the chart
          </span>
        </div>
      )}
    </div>
  );
}
