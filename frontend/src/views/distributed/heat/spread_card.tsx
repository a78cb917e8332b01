import { type ReactNode, useMemo } from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { count, plural } from '../../../core/format';
import { useNavigation } from '../../../state/navigation';
import { Card } from '../../../widgets/card';
import { type JobProps, useRanksQuery } from '../queries';
import { capital } from '../ranks';
import { gridOf, nameOfRow } from './grid';
import { signed, withMinus } from './labels';
import { floorOf, useMetric } from './metrics';
import { type Spread, spreadOf, valuesOf } from './spread';

const WIDTH = 288;
const HEIGHT = 76;
const LEAST_PX = 2;
const MOST_NAMED = 6;
/** Above this fraction and number, outliers mean several kinds of ranks. */
const MOST_ODD_SHARE = 0.1;
const FEW_ODD = 3;

interface ChartProps {
  readonly spread: Spread;
  readonly steps: RankSteps;
}

function Chart({ spread, steps }: ChartProps): ReactNode {
  const { bins, low, high, median, count: rankCount } = spread;
  const most = Math.max(...bins.map((bin) => bin.count));
  const xOf = (value: number): number =>
    high > low ? ((value - low) / (high - low)) * WIDTH : WIDTH / 2;
  const text = (value: number): string => withMinus(value, steps.unit);
  // Square roots: one outlier must stay visible next to a thousand ranks.
  const heightPx = (of: number): number =>
    of === 0 ? 0 : Math.max(LEAST_PX, (Math.sqrt(of) / Math.sqrt(most)) * HEIGHT);
  const width = WIDTH / bins.length;
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${steps.label} of ${plural(rankCount, 'rank')}: from ${text(low)} to ${text(high)}, median ${text(median)}`}
    >
      {bins.map((bin, at) => (
        <g key={bin.low}>
          <rect
            className="spread-bar"
            x={at * width}
            y={HEIGHT - heightPx(bin.count)}
            width={Math.max(1, width - 1)}
            height={heightPx(bin.count)}
          />
          <rect className="spread-hit" x={at * width} y={0} width={width} height={HEIGHT}>
            <title>{`${text(bin.low)} – ${text(bin.high)}: ${plural(bin.count, 'rank')}`}</title>
          </rect>
        </g>
      ))}
      <line className="spread-median" x1={xOf(median)} x2={xOf(median)} y1={0} y2={HEIGHT} />
    </svg>
  );
}

interface OddProps extends ChartProps {
  readonly step: number | null;
}

/** The outliers by name; a click selects one in all views. */
function OddRanks({ spread, steps, step }: OddProps): ReactNode {
  const { location, go } = useNavigation();
  const { odd } = spread;
  if (odd.length === 0) return <p className="muted">No rank is an outlier.</p>;
  if (odd.length > Math.max(FEW_ODD, MOST_ODD_SHARE * spread.count)) {
    return (
      <p className="muted">
        {count(odd.length)} ranks differ from the median: there are several kinds of ranks, such as
        pipeline stages.
      </p>
    );
  }
  return (
    <>
      <ul>
        {odd.slice(0, MOST_NAMED).map(({ row, value, beyond }) => {
          const worker = steps.workers[row] ?? null;
          return (
            <li key={row}>
              <button
                type="button"
                className="as-link"
                aria-pressed={worker === location.worker}
                title={steps.hosts[row] ?? undefined}
                onClick={() => go({ worker, step }, 'replace')}
              >
                {capital(nameOfRow(steps, row))}
              </button>
              <span className="number">{withMinus(value, steps.unit)}</span>
              <span className="number muted">{signed(beyond, steps.unit)}</span>
            </li>
          );
        })}
      </ul>
      {odd.length > MOST_NAMED && (
        <p className="muted">
          and {plural(odd.length - MOST_NAMED, 'other outlier')}; “Worst first” shows them
        </p>
      )}
    </>
  );
}

/** The distribution of the selected metric over the ranks, with outliers. */
export function SpreadCard({ selection, summary }: JobProps): ReactNode {
  const { location } = useNavigation();
  const [metric] = useMetric(summary);
  const { data: steps } = useRanksQuery(selection, 'distributed/steps', { metric });
  const grid = useMemo(() => steps && gridOf(steps), [steps]);
  const column = steps && location.step !== null ? steps.steps.indexOf(location.step) : -1;
  const spread = useMemo(
    () => grid && spreadOf(valuesOf(grid, column < 0 ? null : column, floorOf(metric))),
    [grid, column, metric],
  );
  if (!steps || !spread || steps.empty !== '') return null;
  return (
    <Card
      className="spread"
      label="Distribution over the ranks"
      title={steps.label}
      note={`${column < 0 ? 'mean of' : `step ${location.step} of`} ${count(spread.count)} ranks`}
    >
      <Chart spread={spread} steps={steps} />
      <div className="spread-axis between note" aria-hidden="true">
        <span>{withMinus(spread.low, steps.unit)}</span>
        <span>median {withMinus(spread.median, steps.unit)}</span>
        <span>{withMinus(spread.high, steps.unit)}</span>
      </div>
      <OddRanks spread={spread} steps={steps} step={location.step} />
    </Card>
  );
}
