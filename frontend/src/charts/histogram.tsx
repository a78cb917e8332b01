import type { ReactNode } from 'react';
import type { TimeDistribution } from '../api/types.gen';
import { count, duration, plural } from '../core/format';
import './charts.css';
import './histogram.css';

interface Props {
  readonly of: TimeDistribution;
  /** The unit of the counts: `call`, `run`. */
  readonly what: string;
  readonly label: string;
}

const WIDTH = 320;
const HEIGHT = 84;
const TOP = 12;
const GAP = 1;
const LEAST_PX = 2;

/** The position of a time on the axis, 0 to 1; bins that grow by a factor have equal widths. */
export function positionOf(of: TimeDistribution, ns: number): number {
  const least = of.edges_ns[0] ?? 0;
  const most = of.edges_ns.at(-1) ?? 1;
  if (!of.is_logarithmic) return most > least ? (ns - least) / (most - least) : 0;
  const low = Math.log(Math.max(1, least));
  const high = Math.log(Math.max(2, most));
  return (Math.log(Math.max(1, ns)) - low) / (high - low);
}

interface MarkProps {
  readonly at: number;
  readonly name: string;
}

function anchorOf(at: number): 'start' | 'middle' | 'end' {
  if (at > 0.85) return 'end';
  return at < 0.15 ? 'start' : 'middle';
}

function Mark({ at, name }: MarkProps): ReactNode {
  const x = at * WIDTH;
  return (
    <g className="histogram-mark">
      <line x1={x} x2={x} y1={10} y2={HEIGHT} />
      <text x={x} y={8} textAnchor={anchorOf(at)}>
        {name}
      </text>
    </g>
  );
}

/** Marks that would overlap are drawn as one. */
const areApart = (a: number, b: number): boolean => Math.abs(a - b) > 0.09;

interface BinProps {
  readonly of: TimeDistribution;
  readonly bin: number;
  readonly largest: number;
  readonly what: string;
}

function Bin({ of, bin, largest, what }: BinProps): ReactNode {
  const number = of.counts[bin] ?? 0;
  const low = of.edges_ns[bin] ?? 0;
  const high = of.edges_ns[bin + 1] ?? low;
  const x = positionOf(of, low) * WIDTH;
  const width = Math.max(1, positionOf(of, high) * WIDTH - x - GAP);
  // A bin with one call among thousands stays visible.
  const height = number === 0 ? 0 : Math.max(LEAST_PX, (number / largest) * (HEIGHT - TOP - 4));
  return (
    <g className="histogram-bin">
      <rect className="histogram-hit" x={x} y={TOP} width={width + GAP} height={HEIGHT - TOP}>
        <title>{`${duration(low)} – ${duration(high)}: ${plural(number, what)}`}</title>
      </rect>
      <rect className="histogram-bar" x={x} y={HEIGHT - height} width={width} height={height} />
    </g>
  );
}

/** The distribution of times, with median, 95th percentile and the figures below. */
export function Histogram({ of, what, label }: Props): ReactNode {
  const largest = Math.max(1, ...of.counts);
  const at50 = positionOf(of, of.p50_ns);
  const at95 = positionOf(of, of.p95_ns);
  const words = `${label}: ${plural(of.count, what)} from ${duration(of.min_ns)} to ${duration(of.max_ns)}, half within ${duration(of.p50_ns)}, 95 % within ${duration(of.p95_ns)}`;
  const figures = [
    [`${what}s`, count(of.count)],
    ['mean', duration(of.mean_ns)],
    ['p50', duration(of.p50_ns)],
    ['p95', duration(of.p95_ns)],
    ['max', duration(of.max_ns)],
  ] as const;
  return (
    <figure className="histogram">
      {of.counts.length > 1 ? (
        <>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words}>
            {of.counts.map((_, bin) => (
              <Bin key={of.edges_ns[bin]} of={of} bin={bin} largest={largest} what={what} />
            ))}
            {of.count > 2 && <Mark at={at50} name="p50" />}
            {of.count > 2 && areApart(at50, at95) && <Mark at={at95} name="p95" />}
          </svg>
          <div className="histogram-axis between note" aria-hidden="true">
            <span>{duration(of.min_ns)}</span>
            <span>
              {label}
              {of.is_logarithmic && ', logarithmic'}
            </span>
            <span>{duration(of.max_ns)}</span>
          </div>
        </>
      ) : (
        <p className="muted">All take {duration(of.min_ns)}.</p>
      )}
      <dl className="facts">
        {figures.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}
