import { memo, type ReactNode } from 'react';
import type { Column } from '../../api/types.gen';
import { type CellValue, quantity, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { isNumeric } from '../../core/units';

interface Props {
  readonly column: Column;
  /** Index among the visible columns. */
  readonly index: number;
  readonly value: CellValue;
  /** The value of a full bar. */
  readonly scale: number;
  readonly isActive: boolean;
  /** Replaces the value in the tooltip. */
  readonly title?: string | undefined;
}

function kindOf(column: Column, isActive: boolean): string {
  const kind = isNumeric(column.unit) ? 'number' : column.unit === 'code' ? 'mono' : '';
  return isActive ? `${kind} cell-active` : kind;
}

/** `/home/me/train.py(12): step;…` → `train.py(12): step ‹ …`: file names without folders. */
const shortStack = (value: string): string =>
  value
    .split(';')
    .map((frame) => frame.trim().replace(/^[^(]*[/\\]/, ''))
    .join(' ‹ ');

function textOf(column: Column, value: CellValue): string {
  if (typeof value !== 'string') return quantity(value, column.unit);
  return column.key === 'stack' || column.key === 'call_stack'
    ? shortStack(value)
    : shortName(value);
}

/** A cell with the exact value as a tooltip. */
export const Cell = memo(function Cell(props: Props): ReactNode {
  const { column, index, value, scale, isActive, title } = props;
  const isShare = column.unit === 'share' && typeof value === 'number';
  const text = textOf(column, value);
  return (
    <td
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of a grid is reached by keys
      role="gridcell"
      tabIndex={-1}
      data-column={index}
      aria-colindex={index + 1}
      className={kindOf(column, isActive)}
      title={title ?? quantityExact(value, column.unit)}
    >
      {isShare && (
        <span className="share-bar" aria-hidden="true">
          <span style={{ width: `${scale > 0 ? Math.min(1, value / scale) * 100 : 0}%` }} />
        </span>
      )}
      <span className={value === null ? 'muted' : 'cell-text'}>{text}</span>
    </td>
  );
});
