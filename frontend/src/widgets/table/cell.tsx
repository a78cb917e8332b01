import { memo, type ReactNode } from 'react';
import type { Column } from '../../api/types.gen';
import { type CellValue, quantity, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { isNumeric } from '../../core/units';

/** A cell that is drawn unlike others of its unit. */
interface CellLook {
  readonly text?: string;
  readonly className?: string;
  readonly before?: ReactNode;
  readonly after?: ReactNode;
}

/** The appearance of rows and cells beyond that of their units. */
export interface Look {
  readonly rowClass?: (at: number) => string;
  readonly cell?: (column: Column, at: number) => CellLook | undefined;
}

interface Props {
  readonly column: Column;
  /** Index among the visible columns. */
  readonly index: number;
  readonly value: CellValue;
  /** The value of a full bar. */
  readonly scale: number;
  readonly isActive: boolean;
  /** Whether a group of columns begins here. */
  readonly startsGroup?: boolean;
  /** Replaces the value in the tooltip. */
  readonly title?: string | undefined;
  readonly look?: CellLook | undefined;
}

function classOf({ column, isActive, startsGroup, look }: Props): string {
  const kind = isNumeric(column.unit) ? 'number' : column.unit === 'code' ? 'mono' : '';
  return [kind, isActive && 'cell-active', startsGroup && 'group-start', look?.className]
    .filter(Boolean)
    .join(' ');
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
  const { column, index, value, scale, title, look } = props;
  const isShare = column.unit === 'share' && typeof value === 'number' && look === undefined;
  const text = look?.text ?? textOf(column, value);
  return (
    <td
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of a grid is reached by keys
      role="gridcell"
      tabIndex={-1}
      data-column={index}
      aria-colindex={index + 1}
      className={classOf(props)}
      title={title ?? quantityExact(value, column.unit)}
    >
      {look?.before}
      {isShare && (
        <span className="share-bar" aria-hidden="true">
          <span style={{ width: `${scale > 0 ? Math.min(1, value / scale) * 100 : 0}%` }} />
        </span>
      )}
      <span className={value === null ? 'muted' : 'cell-text'}>{text}</span>
      {look?.after}
    </td>
  );
});
