import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';
import './windowed.css';

interface Props {
  readonly count: number;
  readonly rowPx: number;
  /** The row to keep visible; -1: none. */
  readonly active: number;
  readonly render: (at: number) => ReactNode;
}

const BEYOND = 6;

/** The range of drawn rows. Pure. */
export function windowOf(
  topPx: number,
  heightPx: number,
  { count, rowPx }: { readonly count: number; readonly rowPx: number },
): readonly [first: number, end: number] {
  const first = Math.max(0, Math.floor(topPx / rowPx) - BEYOND);
  return [Math.min(first, count), Math.min(count, Math.ceil((topPx + heightPx) / rowPx) + BEYOND)];
}

/** Rows of equal height, of which only the visible ones are in the document. */
export function Windowed({ count, rowPx, active, render }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [topPx, setTop] = useState(0);
  const [heightPx, setHeight] = useState(600);
  useLayoutEffect(() => {
    if (box.current) setHeight(box.current.clientHeight || 600);
  }, []);
  useLayoutEffect(() => {
    const scroller = box.current;
    if (!scroller || active < 0) return;
    const above = active * rowPx;
    const below = above + rowPx - scroller.clientHeight;
    if (scroller.scrollTop > above) scroller.scrollTop = above;
    else if (scroller.scrollTop < below) scroller.scrollTop = below;
    setTop(scroller.scrollTop);
  }, [active, rowPx]);
  const [first, end] = windowOf(topPx, heightPx, { count, rowPx });
  return (
    <div className="windowed" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div style={{ height: count * rowPx }}>
        {Array.from({ length: Math.max(0, end - first) }, (_, offset) => {
          const at = first + offset;
          return (
            <div key={at} className="windowed-row" style={{ top: at * rowPx, height: rowPx }}>
              {render(at)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
