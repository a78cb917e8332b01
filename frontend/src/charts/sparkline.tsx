import type { ReactNode } from 'react';
import './charts.css';

const COLUMN = 10;
const GAP = 2;
const HEIGHT = 100;

interface Props {
  readonly values: readonly number[];
  /** What it shows, for screen readers. */
  readonly label: string;
}

/** A few values as columns from zero, without axes. */
export function Sparkline({ values, label }: Props): ReactNode {
  const largest = Math.max(...values, 1);
  return (
    <svg
      className="sparkline"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${values.length * COLUMN} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {values.map((value, at) => {
        const height = (value / largest) * HEIGHT;
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
            key={at}
            x={at * COLUMN}
            y={HEIGHT - height}
            width={COLUMN - GAP}
            height={height}
          />
        );
      })}
    </svg>
  );
}
