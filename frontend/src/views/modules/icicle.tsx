import { type PointerEvent, type ReactNode, useMemo, useState } from 'react';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { share } from '../../core/format';
import { type Box, boxAt, boxesOf } from './icicle_layout';
import type { Tree } from './tree';

const ROW_PX = 20;
const MOST_ROWS = 14;
const LEAST_WORDS_PX = 26;

interface Props {
  readonly tree: Tree;
  /** What is as wide as the chart. */
  readonly roots: readonly number[];
  readonly value: (at: number) => number;
  readonly nameOf: (at: number) => string;
  /** Modules of one class have one colour. */
  readonly classOf: (at: number) => string;
  readonly wordsOf: (at: number) => string;
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
  if (width >= LEAST_WORDS_PX) {
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

/** Modules by what they cost, each below what calls it. The table beside it says the same in words. */
export function Icicle(props: Props): ReactNode {
  const { tree, roots, value, wordsOf, onSelect, onZoom } = props;
  const boxes = useMemo(() => boxesOf(tree, roots, value), [tree, roots, value]);
  const rowCount = boxes.reduce((most, box) => Math.max(most, box.row + 1), 0);
  const [hover, setHover] = useState<Hover | null>(null);
  const { canvas } = useSurface((frame) => {
    for (const box of boxes) paintBox(frame, box, props, hover?.box.at ?? null);
    return false;
  });
  const found = (
    event: PointerEvent<HTMLElement> | React.MouseEvent<HTMLElement>,
  ): Hover | null => {
    const { left, top, width } = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const box = boxAt(boxes, x / width, Math.floor(y / ROW_PX));
    return box ? { box, x, y } : null;
  };
  if (boxes.length === 0) {
    return <p className="icicle-none">None of the modules cost anything by this measure.</p>;
  }
  const part = hover ? hover.box.width : 0;
  return (
    <div className="icicle" style={{ maxHeight: MOST_ROWS * ROW_PX }}>
      <canvas
        ref={canvas}
        className="icicle-canvas"
        style={{ height: rowCount * ROW_PX }}
        role="img"
        aria-label="Modules by what they cost; the table below says the same"
        onPointerMove={(event) => setHover(found(event))}
        onPointerLeave={() => setHover(null)}
        onClick={(event) => {
          const at = found(event)?.box.at;
          if (at !== undefined) onSelect(at);
        }}
        onDoubleClick={(event) => onZoom(found(event)?.box.at ?? null)}
      />
      {hover && (
        <div
          className={hover.box.left > 0.6 ? 'icicle-tip on-left' : 'icicle-tip'}
          style={{ left: hover.x, top: hover.y }}
        >
          <strong>{props.nameOf(hover.box.at)}</strong>
          <span>
            {wordsOf(hover.box.at)}, {share(part)} of what is shown
          </span>
        </div>
      )}
    </div>
  );
}
