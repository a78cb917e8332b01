import type { ReactNode } from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { count } from '../../../core/format';
import { capital } from '../names';
import { figure, linesOf, nameOfRow } from './grid';
import type { Cells } from './raster';
import { signed, withMinus } from './words';

const ROWS = 30;

interface Props {
  readonly cells: Cells;
  readonly steps: RankSteps;
  readonly onChoose: (row: number, step: number) => void;
}

interface Row {
  readonly row: number;
  readonly mean: number;
  /** The place of its worst step; -1: none is known. */
  readonly worst: number;
}

function rowOf({ grid, isHighBad }: Cells, row: number): Row {
  const values = Array.from({ length: grid.columns }, (_, at) => figure(grid, row, at, 'absolute'));
  const known = values.filter((value) => !Number.isNaN(value));
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return { row, mean, worst: values.indexOf((isHighBad ? Math.max : Math.min)(...known)) };
}

/** The same in figures, the worst ranks first, for those who cannot see the map or would rather read. */
export function WorstTable({ cells, steps, onChoose }: Props): ReactNode {
  const lines = linesOf(steps, cells.grid, { order: 'excess', missing: [] });
  const shown = lines.slice(0, ROWS);
  const rows = shown.flatMap((line) => (line.kind === 'rank' ? [rowOf(cells, line.row)] : []));
  const { unit, label } = steps;
  return (
    <details className="as-table">
      <summary>As a table</summary>
      <div className="scroll-x">
        <table className="plain">
          <caption>
            {rows.length < lines.length
              ? `The ${rows.length} ranks furthest from the median, of ${count(lines.length)}`
              : 'Ranks, those furthest from the median first'}
          </caption>
          <thead>
            <tr>
              <th scope="col">Rank</th>
              {[`${label}, mean`, 'Beside the median', 'Worst step', `${label} there`].map(
                (each) => (
                  <th key={each} scope="col" className="number">
                    {each}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ row, mean, worst }) => {
              const step = steps.steps[worst];
              return (
                <tr key={row}>
                  <th scope="row">
                    <button
                      type="button"
                      className="as-link"
                      disabled={step === undefined}
                      onClick={() => onChoose(row, step ?? 0)}
                    >
                      {capital(nameOfRow(steps, row))}
                    </button>
                  </th>
                  <td className="number">{withMinus(mean, unit)}</td>
                  <td className="number">
                    {signed((steps.is_high_bad ? 1 : -1) * (cells.grid.excess[row] ?? NaN), unit)}
                  </td>
                  <td className="number">{step ?? '–'}</td>
                  <td className="number">
                    {withMinus(figure(cells.grid, row, worst, 'absolute'), unit)}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}
