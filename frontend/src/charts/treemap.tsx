import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { squarified } from './squarified';
import './treemap.css';

export interface Tile {
  readonly id: string;
  readonly label: string;
  /** The value, shown where there is room. */
  readonly note: string;
  /** The tooltip. */
  readonly title: string;
  readonly value: number;
  readonly fill: string;
  /** Hatched: a sum of several things, or unknown. */
  readonly isVague?: boolean;
}

interface Props {
  readonly tiles: readonly Tile[];
  readonly label: string;
  readonly selected: string | null;
  readonly onSelect: (id: string) => void;
}

const WORDS_PX = { width: 44, height: 20 } as const;
const NOTE_PX = 36;
const MOVES: Readonly<Record<string, number>> = {
  ArrowRight: 1,
  ArrowDown: 1,
  ArrowLeft: -1,
  ArrowUp: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** A treemap of buttons, in the order of size. */
export function Treemap({ tiles, label, selected, onSelect }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [active, setActive] = useState(0);
  useEffect(() => {
    if (!box.current) return undefined;
    const measure = (): void => {
      const { clientWidth: width = 0, clientHeight: height = 0 } = box.current ?? {};
      setSize({ width, height });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const rectangles = useMemo(
    () =>
      squarified(
        tiles.map((tile) => tile.value),
        { left: 0, top: 0, ...size },
      ),
    [tiles, size],
  );
  const current = Math.min(active, tiles.length - 1);
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = MOVES[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(tiles.length - 1, current + move));
    setActive(next);
    box.current?.querySelectorAll<HTMLElement>('button')[next]?.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be no better word for a chart
    <div className="treemap" ref={box} role="group" aria-label={label} onKeyDown={onKeyDown}>
      {tiles.map((tile, at) => {
        const rectangle = rectangles[at];
        const { width = 0, height = 0 } = rectangle ?? {};
        const hasWords = width >= WORDS_PX.width && height >= WORDS_PX.height;
        return (
          <button
            key={tile.id}
            type="button"
            className={tile.isVague ? 'tile vague' : 'tile'}
            aria-pressed={tile.id === selected}
            title={tile.title}
            tabIndex={at === current ? 0 : -1}
            style={{ ...rectangle, backgroundColor: tile.fill }}
            onFocus={() => setActive(at)}
            onClick={() => onSelect(tile.id)}
          >
            <span className={hasWords ? 'ellipsis strong' : 'visually-hidden'}>{tile.label}</span>{' '}
            <span
              className={hasWords && height >= NOTE_PX ? 'tile-note ellipsis' : 'visually-hidden'}
            >
              {tile.note}
            </span>
          </button>
        );
      })}
    </div>
  );
}
