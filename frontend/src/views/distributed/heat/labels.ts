/** Texts for values and cells of the heat map. Pure. */
import type { RankSteps } from '../../../api/types.gen';
import { quantity } from '../../../core/format';
import { capital } from '../ranks';
import { figure, nameOfLine } from './grid';
import type { Cell } from './layout';
import type { Cells } from './raster';

/** A difference with its sign. */
export function signed(value: number, unit: RankSteps['unit']): string {
  if (!Number.isFinite(value)) return quantity(null, unit);
  return `${value < 0 ? '−' : '+'}${quantity(Math.abs(value), unit)}`;
}

/** A value with a typographic minus sign. */
export const withMinus = (value: number, unit: RankSteps['unit']): string =>
  value < 0 ? signed(value, unit) : quantity(value, unit);

export function cellLabels(cells: Cells, steps: RankSteps, cell: Cell): string[] {
  const line = cells.lines[cell.line];
  const step = steps.steps[cell.column];
  if (!line || step === undefined) return [];
  const name = capital(nameOfLine(line, steps));
  if (line.kind === 'missing') return [name, 'Not recorded'];
  const host = steps.hosts[line.row];
  const head = `${name}, step ${step}${host ? `, ${host}` : ''}`;
  const value = figure(cells.grid, line.row, cell.column, 'absolute');
  if (Number.isNaN(value)) return [head, `${steps.label}: not recorded`];
  const median = cells.grid.medians[cell.column] ?? Number.NaN;
  return [
    head,
    `${steps.label}: ${withMinus(value, steps.unit)}`,
    `Median of the step: ${withMinus(median, steps.unit)} (${signed(value - median, steps.unit)})`,
  ];
}
