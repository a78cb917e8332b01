import type { ReactNode } from 'react';
import { colourOf } from '../core/colour';
import { duration, quantityExact, share } from '../core/format';
import './charts.css';

export interface Part {
  readonly id: string;
  readonly label: string;
  readonly help: string;
  readonly valueNs: number;
}

interface Props {
  readonly parts: readonly Part[];
  readonly totalNs: number;
  /** The whole: `mean step`. */
  readonly whole: string;
  /** The selected part; a second click clears the selection. */
  readonly chosen?: string | null;
  readonly onChoose?: (part: string | null) => void;
}

/** Parts above zero, largest first. */
export function shownParts(parts: readonly Part[]): Part[] {
  return parts.filter((part) => part.valueNs > 0).sort((a, b) => b.valueNs - a.valueNs);
}

function titleOf(part: Part, totalNs: number): string {
  const help = part.help === '' ? '' : `\n${part.help}`;
  return `${part.label}: ${quantityExact(part.valueNs, 'ns')}, ${share(part.valueNs / totalNs)}${help}`;
}

interface LegendProps {
  readonly part: Part;
  readonly totalNs: number;
  readonly isChosen: boolean;
  readonly onChoose: Props['onChoose'];
}

function LegendItem({ part, totalNs, isChosen, onChoose }: LegendProps): ReactNode {
  const words = (
    <>
      <span className="swatch" style={{ background: colourOf(part.id) }} />
      <span className="muted">{part.label}</span>
      <span className="strong">{duration(part.valueNs)}</span>
      <span className="muted">{share(part.valueNs / totalNs)}</span>
    </>
  );
  if (!onChoose) return words;
  return (
    <button
      type="button"
      className="legend-choice option"
      aria-pressed={isChosen}
      onClick={() => onChoose(isChosen ? null : part.id)}
    >
      {words}
    </button>
  );
}

/** A stacked bar, with a legend of times and percentages. */
export function StackedBar({ parts, totalNs, whole, chosen = null, onChoose }: Props): ReactNode {
  const shown = shownParts(parts);
  if (shown.length === 0 || totalNs <= 0) return null;
  const isDimmed = (part: Part): boolean => chosen !== null && part.id !== chosen;
  return (
    <figure className={onChoose ? 'stacked stacked-choice' : 'stacked'}>
      <div className="stacked-bar" aria-hidden="true">
        {shown.map((part) => (
          // biome-ignore lint/a11y: the legend below has a button for each part
          <span
            key={part.id}
            style={{
              flexGrow: part.valueNs,
              background: colourOf(part.id),
              opacity: isDimmed(part) ? 0.3 : 1,
            }}
            title={titleOf(part, totalNs)}
            onClick={() => onChoose?.(part.id === chosen ? null : part.id)}
          />
        ))}
      </div>
      <ul className="legend" aria-label={`Parts of the ${whole}`}>
        <li className="muted" aria-hidden="true">
          Of the {whole}:
        </li>
        {shown.map((part) => (
          <li key={part.id} title={titleOf(part, totalNs)}>
            <LegendItem
              part={part}
              totalNs={totalNs}
              isChosen={part.id === chosen}
              onChoose={onChoose}
            />
          </li>
        ))}
      </ul>
    </figure>
  );
}
