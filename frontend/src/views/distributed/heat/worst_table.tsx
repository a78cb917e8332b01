import type { ReactNode } from 'react';
import type { RankSteps } from '../../../api/types.gen';
import { count } from '../../../core/format';
import { PlainTable } from '../../../widgets/plain_table';
import { capital } from '../ranks';
import { figure, linesOf, nameOfRow } from './grid';
import { signed, withMinus } from './labels';
import type { Cells } from './raster';

const ROWS = 30;

interface Props {
  readonly cells: Cells;
  readonly steps: RankSteps;
  readonly onChoose: (row: number, step: number) => void;
}

interface Row {
  readonly row: number;
  readonly mean: number;
  /** Index of its worst step; -1 without values. */
  readonly worst: number;
}

function rowOf({ grid, isHighBad }: Cells, row: number): Row {
  const values = Array.from({ length: grid.columns }, (_, at) => figure(grid, row, at, 'absolute'));
  const recorded = values.filter((value) => !Number.isNaN(value));
  const mean = recorded.reduce((sum, value) => sum + value, 0) / recorded.length;
  return { row, mean, worst: values.indexOf((isHighBad ? Math.max : Math.min)(...recorded)) };
}

/** The values of the heat map as a table, the worst ranks first. */
export function WorstTable({ cells, steps, onChoose }: Props): ReactNode {
  const lines = linesOf(steps, cells.grid, { order: 'excess', missing: [] });
  const shown = lines.slice(0, ROWS);
  const rows = shown.flatMap((line) => (line.kind === 'rank' ? [rowOf(cells, line.row)] : []));
  const { unit, label } = steps;
  const sign = steps.is_high_bad ? 1 : -1;
  return (
    <details className="as-table">
      <summary>As a table</summary>
      <p className="muted">
        {rows.length < lines.length
          ? `The ${rows.length} ranks furthest from the median, of ${count(lines.length)}`
          : 'Ranks, those furthest from the median first'}
      </p>
      <div className="scroll-x">
        <PlainTable
          rows={rows}
          keyOf={({ row }) => row}
          columns={[
            {
              label: 'Rank',
              isHeader: true,
              cell: ({ row, worst }) => (
                <button
                  type="button"
                  className="as-link"
                  disabled={worst < 0}
                  onClick={() => onChoose(row, steps.steps[worst] ?? 0)}
                >
                  {capital(nameOfRow(steps, row))}
                </button>
              ),
            },
            {
              label: `${label}, mean`,
              isNumber: true,
              cell: ({ mean }) => withMinus(mean, unit),
            },
            {
              label: 'Difference from the median',
              isNumber: true,
              cell: ({ row }) => signed(sign * (cells.grid.excess[row] ?? NaN), unit),
            },
            { label: 'Worst step', isNumber: true, cell: ({ worst }) => steps.steps[worst] ?? '–' },
            {
              label: `${label} of that step`,
              isNumber: true,
              cell: ({ row, worst }) => withMinus(figure(cells.grid, row, worst, 'absolute'), unit),
            },
          ]}
        />
      </div>
    </details>
  );
}
