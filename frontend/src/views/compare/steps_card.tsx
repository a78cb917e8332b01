import type { ReactNode } from 'react';
import type { ComparedSide, ComparisonResult, Side } from '../../api/types.gen';
import { duration, plural, quantityExact, tick } from '../../core/format';
import { Card } from '../../widgets/card';
import { PlainTable } from '../../widgets/plain_table';

interface Props {
  readonly data: ComparisonResult;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

const MARGIN = 0.06;
const TICKS = 4;
const ROW_PX = 46;
/** Vertical offsets that keep dots of equal times apart. */
const LANES = [0, 9, -7, 4, -11, 12, -3] as const;

/** The range of all steps of both sides, with a margin. */
function rangeOf(steps: readonly number[]): Range {
  const least = steps.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = steps.reduce((a, b) => Math.max(a, b), 0);
  const margin = Math.max(1, (most - least) * MARGIN);
  return { from: Math.max(0, least - margin), to: most + margin };
}

const percentIn = ({ from, to }: Range, value: number): number =>
  Math.min(100, Math.max(0, ((value - from) / (to - from)) * 100));

interface StripProps {
  readonly steps: readonly number[];
  readonly side: Side;
  readonly range: Range;
  readonly y: number;
  readonly name: 'before' | 'after';
}

function Strip({ steps, side, range, y, name }: StripProps): ReactNode {
  const mean = side.mean_step_ns;
  const deviation = side.standard_deviation_ns;
  const left = percentIn(range, mean - deviation);
  const right = percentIn(range, mean + deviation);
  const at = `${percentIn(range, mean)}%`;
  return (
    <g className={`strip-${name}`}>
      <rect
        x={`${left}%`}
        y={y - 15}
        width={`${right - left}%`}
        height={30}
        className="strip-band"
      />
      {steps.map((step, index) => (
        <circle
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is its index
          key={index}
          cx={`${percentIn(range, step)}%`}
          cy={y + (LANES[index % LANES.length] ?? 0)}
          r={3}
        />
      ))}
      <line x1={at} x2={at} y1={y - 18} y2={y + 18} className="strip-mean" />
    </g>
  );
}

function Strips({ data }: Props): ReactNode {
  const { before, after, comparison } = data;
  const all = [...before.step_ns, ...after.step_ns];
  if (all.length === 0) return null;
  const range = rangeOf(all);
  const values = Array.from(
    { length: TICKS + 1 },
    (_, at) => range.from + ((range.to - range.from) * at) / TICKS,
  );
  return (
    <div className="strips" aria-hidden="true">
      <div className="strip-names muted">
        <span>before</span>
        <span>after</span>
      </div>
      <div>
        <svg width="100%" height={2 * ROW_PX} aria-hidden="true">
          <Strip
            steps={before.step_ns}
            side={comparison.before}
            range={range}
            y={ROW_PX / 2}
            name="before"
          />
          <Strip
            steps={after.step_ns}
            side={comparison.after}
            range={range}
            y={ROW_PX * 1.5}
            name="after"
          />
        </svg>
        <div className="between note">
          {values.map((value) => (
            <span key={value}>{tick(Number(value.toPrecision(3)))}</span>
          ))}
        </div>
      </div>
    </div>
  );
}

interface Line {
  readonly label: string;
  readonly help: string;
  readonly value: (side: Side, compared: ComparedSide) => string;
  readonly exact: (side: Side) => string;
}

const exact = (value: number): string => quantityExact(value, 'ns');

const LINES: readonly Line[] = [
  {
    label: 'Mean',
    help: 'Mean step, including its device work.',
    value: (side) => duration(side.mean_step_ns),
    exact: (side) => exact(side.mean_step_ns),
  },
  {
    label: 'Median',
    help: 'Half of the steps are shorter.',
    value: (side) => duration(side.median_step_ns),
    exact: (side) => exact(side.median_step_ns),
  },
  {
    label: 'Deviation',
    help: 'Standard deviation of the steps.',
    value: (side) => (side.step_count > 1 ? duration(side.standard_deviation_ns) : '–'),
    exact: (side) => exact(side.standard_deviation_ns),
  },
  {
    label: 'Steps',
    help: 'Steps of several ranks count once.',
    value: (side) => String(side.step_count),
    exact: (side) => plural(side.recording_count, 'trace'),
  },
  {
    label: 'Recorded steps',
    help: 'The numbers of all complete steps; select some of them above.',
    value: (_, { step_numbers }) => step_numbers || '–',
    exact: () => '',
  },
];

const BATCHES: readonly Line[] = [
  {
    label: 'Batch size',
    help: 'From the shapes of the input; – if unknown.',
    value: ({ batch_size }) => (batch_size === null ? '–' : String(batch_size)),
    exact: () => '',
  },
  {
    label: 'Time per sample',
    help: 'Mean step divided by the batch size.',
    value: ({ batch_ns }) => (batch_ns === null ? '–' : duration(batch_ns)),
    exact: ({ batch_ns }) => (batch_ns === null ? '' : exact(batch_ns)),
  },
];

/** The distribution of the steps of both sides, on which the test rests. */
export function StepsCard({ data }: Props): ReactNode {
  const { before, after } = data.comparison;
  const hasBatch = before.batch_size !== null || after.batch_size !== null;
  return (
    <Card title="Steps" note="a dot per step; line: mean; band: ± one standard deviation">
      <Strips data={data} />
      <PlainTable
        label="Steps before and after"
        rows={[...LINES, ...(hasBatch ? BATCHES : [])]}
        keyOf={({ label }) => label}
        rowProps={({ help }) => ({ title: help })}
        columns={[
          { label: 'Figure', isHeader: true, className: 'muted', cell: ({ label }) => label },
          {
            label: 'Before',
            isNumber: true,
            title: (line) => line.exact(before),
            cell: (line) => line.value(before, data.before),
          },
          {
            label: 'After',
            isNumber: true,
            title: (line) => line.exact(after),
            cell: (line) => line.value(after, data.after),
          },
        ]}
      />
    </Card>
  );
}
