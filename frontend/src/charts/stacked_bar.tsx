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
  /** What the whole bar is: `mean step`. */
  readonly whole: string;
}

/** The largest first; what is nothing has neither a place in the bar nor in the legend. */
export function shownParts(parts: readonly Part[]): Part[] {
  return parts.filter((part) => part.valueNs > 0).sort((a, b) => b.valueNs - a.valueNs);
}

function titleOf(part: Part, totalNs: number): string {
  const help = part.help === '' ? '' : `\n${part.help}`;
  return `${part.label}: ${quantityExact(part.valueNs, 'ns')}, ${share(part.valueNs / totalNs)}${help}`;
}

/** One bar of a whole's parts, with a legend that says each in time and share. */
export function StackedBar({ parts, totalNs, whole }: Props): ReactNode {
  const shown = shownParts(parts);
  if (shown.length === 0 || totalNs <= 0) return null;
  return (
    <figure className="stacked">
      <div className="stacked-bar" aria-hidden="true">
        {shown.map((part) => (
          <span
            key={part.id}
            style={{ flexGrow: part.valueNs, background: colourOf(part.id) }}
            title={titleOf(part, totalNs)}
          />
        ))}
      </div>
      <ul className="legend" aria-label={`Parts of the ${whole}`}>
        {shown.map((part) => (
          <li key={part.id} title={titleOf(part, totalNs)}>
            <span className="swatch" style={{ background: colourOf(part.id) }} />
            <span className="legend-label">{part.label}</span>
            <span className="legend-value">{duration(part.valueNs)}</span>
            <span className="legend-share">{share(part.valueNs / totalNs)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
