import { type KeyboardEvent, type ReactNode, useMemo, useRef, useState } from 'react';
import { movedIndex } from '../core/list_keys';
import { squarified } from './squarified';
import { useSize } from './use_size';
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
/** A treemap goes on to the right as it does downwards. */
const DOWNWARDS: Readonly<Record<string, string>> = {
  ArrowRight: 'ArrowDown',
  ArrowLeft: 'ArrowUp',
};

/** A treemap of buttons, in the order of size. */
export function Treemap({ tiles, label, selected, onSelect }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const size = useSize(box);
  const [active, setActive] = useState(0);
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
    const next = movedIndex(DOWNWARDS[event.key] ?? event.key, current, tiles.length);
    if (next === null) return;
    event.preventDefault();
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
