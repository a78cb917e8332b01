import type { ReactNode } from 'react';
import type { ComparisonAnswer, Side } from '../../api/types.gen';
import { duration, plural, quantityExact, tick } from '../../core/format';

interface Props {
  readonly answer: ComparisonAnswer;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

const MARGIN = 0.06;
const TICKS = 4;
const ROW_PX = 46;
/** Dots of one time would hide each other: they lie on lanes. */
const LANES = [0, 9, -7, 4, -11, 12, -3] as const;

/** All steps of both sides, with some air. */
function rangeOf(steps: readonly number[]): Range {
  const least = steps.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = steps.reduce((a, b) => Math.max(a, b), 0);
  const air = Math.max(1, (most - least) * MARGIN);
  return { from: Math.max(0, least - air), to: most + air };
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
          // biome-ignore lint/suspicious/noArrayIndexKey: a step is its place
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

function Strips({ answer }: Props): ReactNode {
  const { before, after, comparison } = answer;
  const all = [...before.step_ns, ...after.step_ns];
  if (all.length === 0) return null;
  const range = rangeOf(all);
  const values = Array.from(
    { length: TICKS + 1 },
    (_, at) => range.from + ((range.to - range.from) * at) / TICKS,
  );
  return (
    <div className="strips" aria-hidden="true">
      <div className="strip-names">
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
        <div className="strip-axis">
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
  readonly value: (side: Side) => string;
  readonly exact: (side: Side) => string;
}

const exact = (value: number): string => quantityExact(value, 'ns');

const LINES: readonly Line[] = [
  {
    label: 'Mean',
    help: 'The mean step, until its work on the device ends.',
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
    help: 'The steps’ standard deviation.',
    value: (side) => (side.step_count > 1 ? duration(side.standard_deviation_ns) : '–'),
    exact: (side) => exact(side.standard_deviation_ns),
  },
  {
    label: 'Steps',
    help: 'Steps of several ranks count once.',
    value: (side) => String(side.step_count),
    exact: (side) => plural(side.recording_count, 'recording'),
  },
];

const BATCHES: readonly Line[] = [
  {
    label: 'Batch size',
    help: 'By the shapes of the input; a dash where they do not tell.',
    value: ({ batch_size }) => (batch_size === null ? '–' : String(batch_size)),
    exact: () => '',
  },
  {
    label: 'Time a sample',
    help: 'The mean step over the batch size.',
    value: ({ batch_ns }) => (batch_ns === null ? '–' : duration(batch_ns)),
    exact: ({ batch_ns }) => (batch_ns === null ? '' : exact(batch_ns)),
  },
];

/** How the steps of both sides are spread: what the test of the differences rests on. */
export function StepsCard({ answer }: Props): ReactNode {
  const { before, after } = answer.comparison;
  const hasBatch = before.batch_size !== null || after.batch_size !== null;
  return (
    <section className="card">
      <div className="card-head">
        <h2>Steps</h2>
        <p>a dot a step; line: mean; band: ± one deviation</p>
      </div>
      <Strips answer={answer} />
      <table className="plain" aria-label="Steps before and after">
        <thead>
          <tr>
            <td />
            <th scope="col" className="number">
              Before
            </th>
            <th scope="col" className="number">
              After
            </th>
          </tr>
        </thead>
        <tbody>
          {[...LINES, ...(hasBatch ? BATCHES : [])].map((line) => (
            <tr key={line.label} title={line.help}>
              <th scope="row" className="muted">
                {line.label}
              </th>
              <td className="number" title={line.exact(before)}>
                {line.value(before)}
              </td>
              <td className="number" title={line.exact(after)}>
                {line.value(after)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
