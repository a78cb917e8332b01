import type { ReactNode } from 'react';
import type { Column } from '../../api/types.gen';
import { type CellValue, quantity, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { isNumeric } from '../../core/units';

interface Props {
  readonly column: Column;
  readonly value: CellValue;
  /** The column's largest value: what a full bar stands for. */
  readonly scale: number;
  /** In place of the value in the tooltip. */
  readonly title?: string | undefined;
}

/** One value as a table shows it, with all of it in the tooltip. */
export function Cell({ column, value, scale, title }: Props): ReactNode {
  const isShare = column.unit === 'share' && typeof value === 'number';
  const text = typeof value === 'string' ? shortName(value) : quantity(value, column.unit);
  const kind = isNumeric(column.unit) ? 'number' : column.unit === 'code' ? 'mono' : '';
  return (
    <td className={kind} title={title ?? quantityExact(value, column.unit)}>
      {isShare && (
        <span className="share-bar" aria-hidden="true">
          <span style={{ width: `${scale > 0 ? Math.min(1, value / scale) * 100 : 0}%` }} />
        </span>
      )}
      <span className={value === null ? 'cell-none' : 'cell-text'}>{text}</span>
    </td>
  );
}
