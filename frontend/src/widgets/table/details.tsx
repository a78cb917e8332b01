import type { ReactNode } from 'react';
import type { Column, Table } from '../../api/types.gen';
import { type CellValue, quantity, quantityExact } from '../../core/format';
import { isNumeric } from '../../core/units';
import { Copy } from '../copy';
import { Drawer } from '../drawer';
import { Goto } from '../goto';
import { Icon } from '../icon';
import { cellOf, WHOLE_NAME, wholeName } from './rows';

interface FieldProps {
  readonly column: Column;
  readonly value: CellValue;
}

function Field({ column, value }: FieldProps): ReactNode {
  const text = quantity(value, column.unit);
  const exact = quantityExact(value, column.unit);
  return (
    <div className="field" title={column.help}>
      <dt>{column.label}</dt>
      <dd className={isNumeric(column.unit) ? 'number' : ''}>
        <span className={column.unit === 'code' ? 'mono' : ''}>{value === null ? '–' : text}</span>
        {exact !== text && <span className="field-exact note">{exact}</span>}
      </dd>
    </div>
  );
}

interface Props {
  readonly table: Table;
  readonly at: number;
  readonly close: () => void;
  readonly children?: ReactNode;
}

/** All values of a row, including hidden columns, with all digits. */
export function RowDrawer({ table, at, close, children }: Props): ReactNode {
  const [first, ...others] = table.columns.filter((column) => column.key !== WHOLE_NAME);
  if (!first) return null;
  const name = wholeName(table, at);
  const event = cellOf(table, 'event', at);
  return (
    <Drawer title="Details" close={close}>
      <p className="field-name mono">{name}</p>
      <div className="row">
        <Copy text={name} label="Copy name" />
        {typeof event === 'number' && (
          <Goto to={{ view: 'timeline', event }} className="button">
            <Icon name="timeline" size={14} /> Show in the timeline
          </Goto>
        )}
      </div>
      {children}
      {children !== undefined && <h3 className="detail">All values</h3>}
      <dl className="fields">
        {others.map((column) => (
          <Field key={column.key} column={column} value={cellOf(table, column.key, at)} />
        ))}
      </dl>
    </Drawer>
  );
}
