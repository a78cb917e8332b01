import type { ReactNode } from 'react';
import type { Comparison, Part } from '../../api/types.gen';
import { colourOf } from '../../core/colour';
import { change, duration, quantityExact, relativeChange, tick } from '../../core/format';
import { Icon } from '../../widgets/icon';
import { deltaOf, isNoise, significanceOf } from './phrases';
import { type Level, type Waterfall, waterfallOf } from './waterfall';
import '../../charts/charts.css';

interface Props {
  readonly comparison: Comparison;
  /** Opens the rows of a category; null without rows. */
  readonly onOpen: (category: string) => (() => void) | null;
}

const TICKS = 2;

type ToPercent = (value: number) => number;

/** Converts a time to a percentage of the track. */
function percentIn({ least, most }: Waterfall): ToPercent {
  const width = Math.max(1, most - least);
  return (value) => (Math.max(0, value - least) / width) * 100;
}

/** The tone of a change. */
function toneOf(part: Part): 'better' | 'worse' | 'noise' {
  if (isNoise(part.change) || deltaOf(part.change) === 0) return 'noise';
  return deltaOf(part.change) < 0 ? 'better' : 'worse';
}

function titleOf({ label, meaning, change: of }: Part): string {
  const values = `${quantityExact(of.before, of.unit)} → ${quantityExact(of.after, of.unit)}`;
  return `${label}: ${values}, ${significanceOf(of)}\n${meaning}`;
}

interface PartProps {
  readonly level: Level;
  readonly percentOf: ToPercent;
  readonly open: (() => void) | null;
}

function PartRow({ level, percentOf, open }: PartProps): ReactNode {
  const { part, from, to } = level;
  const { before, after, unit } = part.change;
  const left = Math.min(percentOf(from), percentOf(to));
  const tone = toneOf(part);
  return (
    <tr className={`waterfall-part tone-${tone}`} title={titleOf(part)}>
      <th scope="row">
        <span className="swatch" style={{ background: colourOf(part.id) }} />
        {open ? (
          <button type="button" className="as-link inline" onClick={open}>
            {part.label} <Icon name="chevron" size={12} />
            <span className="visually-hidden">: show its rows</span>
          </button>
        ) : (
          part.label
        )}
      </th>
      <td className="number muted">{duration(before)}</td>
      <td className="number muted">{duration(after)}</td>
      <td className="waterfall-track" aria-hidden="true">
        <span className="waterfall-room">
          <span
            className="waterfall-bar"
            style={{ left: `${left}%`, width: `${Math.abs(percentOf(to) - percentOf(from))}%` }}
          />
          <span className="waterfall-level" style={{ left: `${percentOf(to)}%` }} />
        </span>
      </td>
      <td className="number waterfall-delta">{change(deltaOf(part.change), unit)}</td>
      <td className="number muted">{relativeChange(before, after)}</td>
      <td className="muted waterfall-sure note">{isNoise(part.change) ? 'not significant' : ''}</td>
    </tr>
  );
}

interface TotalProps {
  readonly label: string;
  readonly value: number;
  readonly percentOf: ToPercent;
}

function Total({ label, value, percentOf }: TotalProps): ReactNode {
  return (
    <tr className="waterfall-total">
      <th scope="row">{label}</th>
      <td className="number" colSpan={2} title={quantityExact(value, 'ns')}>
        {duration(value)}
      </td>
      <td className="waterfall-track" aria-hidden="true">
        <span className="waterfall-room">
          <span className="waterfall-bar" style={{ left: 0, width: `${percentOf(value)}%` }} />
          <span className="waterfall-level" style={{ left: `${percentOf(value)}%` }} />
        </span>
      </td>
      <td colSpan={3} />
    </tr>
  );
}

function Axis({ chart }: { readonly chart: Waterfall }): ReactNode {
  const values = Array.from(
    { length: TICKS + 1 },
    (_, at) => chart.least + ((chart.most - chart.least) * at) / TICKS,
  );
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in this row takes the focus
    <tr aria-hidden="true" className="waterfall-axis">
      <td colSpan={3}>{chart.least > 0 && 'axis does not start at zero'}</td>
      <td className="waterfall-track">
        <span className="waterfall-room">
          {values.map((value, at) => (
            <span key={value} style={{ left: `${(at / TICKS) * 100}%` }}>
              {tick(Number(value.toPrecision(3)))}
            </span>
          ))}
        </span>
      </td>
      <td colSpan={3} />
    </tr>
  );
}

const HEADS = ['Category', 'Before', 'After', 'Chart', 'Difference', 'Difference in %', 'Note'];

/** The change of the mean step by category. */
export function WaterfallChart({ comparison, onOpen }: Props): ReactNode {
  const chart = waterfallOf(comparison);
  const percentOf = percentIn(chart);
  const { step } = comparison;
  const what = comparison.before.step_count > 0 ? 'mean step' : 'trace';
  return (
    <table className="waterfall" aria-label={`From the ${what} before to the one after`}>
      <thead className="visually-hidden">
        <tr>
          {HEADS.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        <Total label="Before" value={step.before} percentOf={percentOf} />
        {chart.levels.map((level) => (
          <PartRow
            key={level.part.id}
            level={level}
            percentOf={percentOf}
            open={onOpen(level.part.id)}
          />
        ))}
        <Total label="After" value={step.after} percentOf={percentOf} />
        <Axis chart={chart} />
      </tbody>
    </table>
  );
}
