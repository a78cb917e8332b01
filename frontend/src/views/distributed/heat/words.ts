/** What stands in a cell of the heat map, in words. Pure. */
import type { RankSteps } from '../../../api/types.gen';
import { quantity } from '../../../core/format';
import { capital } from '../names';
import { figure, nameOfLine } from './grid';
import type { Place } from './layout';
import type { Cells } from './raster';

/** A difference with its sign. */
export function signed(value: number, unit: RankSteps['unit']): string {
  if (!Number.isFinite(value)) return quantity(null, unit);
  return `${value < 0 ? '−' : '+'}${quantity(Math.abs(value), unit)}`;
}

/** A value, whose sign is a true minus. */
export const withMinus = (value: number, unit: RankSteps['unit']): string =>
  value < 0 ? signed(value, unit) : quantity(value, unit);

export function cellWords(cells: Cells, steps: RankSteps, place: Place): string[] {
  const line = cells.lines[place.line];
  const step = steps.steps[place.column];
  if (!line || step === undefined) return [];
  const name = capital(nameOfLine(line, steps));
  if (line.kind === 'missing') return [name, 'Not recorded'];
  const host = steps.hosts[line.row];
  const head = `${name}, step ${step}${host ? `, ${host}` : ''}`;
  const value = figure(cells.grid, line.row, place.column, 'absolute');
  if (Number.isNaN(value)) return [head, `${steps.label}: not recorded`];
  const median = cells.grid.medians[place.column] ?? Number.NaN;
  return [
    head,
    `${steps.label}: ${withMinus(value, steps.unit)}`,
    `Median of the step: ${withMinus(median, steps.unit)} (${signed(value - median, steps.unit)})`,
  ];
}
