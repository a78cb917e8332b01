import type { ReactNode } from 'react';
import type { Change, Row } from '../../api/types.gen';
import { change, quantity, quantityExact, relativeChange } from '../../core/format';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { deltaOf, significanceOf } from './phrases';
import { type AnyRow, isRest, isRow } from './rows';
import type { Side } from './sides';

interface Props {
  readonly row: AnyRow;
  readonly before: Side;
  readonly after: Side;
}

function changed(label: string, of: Change): Fact {
  const { before, after, unit } = of;
  if (before === 0 && after === 0) return null;
  const relative = relativeChange(before, after);
  return [
    label,
    <span key={label}>
      {quantity(before, unit)} → {quantity(after, unit)}
      <span className="field-exact note">
        {change(deltaOf(of), unit)}
        {relative !== '' && `, ${relative}`}; {significanceOf(of)}
      </span>
    </span>,
    `${quantityExact(before, unit)} → ${quantityExact(after, unit)}`,
  ];
}

const VIEWS: Readonly<Record<string, string>> = {
  operator: 'operators',
  annotation: 'operators',
  kernel: 'kernels',
};

interface LinkProps {
  readonly row: AnyRow;
  readonly side: Side;
  readonly label: string;
  /** Calls on that side. */
  readonly calls: number;
}

/** A link to a row on one side, if a view lists such rows. */
function RowLink({ row, side, label, calls }: LinkProps): ReactNode {
  const view = isRow(row) ? VIEWS[row.kind] : undefined;
  if (view === undefined || calls === 0) return null;
  const { run, worker, span } = side;
  return (
    <Goto to={{ run: run.id, worker, span, view, search: row.name }} className="button">
      {label}
    </Goto>
  );
}

/** Whether a row runs on the host, and may have callees. */
const isHost = ({ kind }: Row): boolean => kind === 'operator' || kind === 'annotation';

/** The changes of all times of a row. */
function factsOf(row: AnyRow): Fact[] {
  const hasCallees = isRow(row) && isHost(row);
  return [
    changed('Device time per step', row.device),
    changed('Host time per step', row.host),
    hasCallees && changed('Device time, including callees', row.device_total),
    hasCallees && changed('Host time, including callees', row.host_total),
    changed('Calls per step', row.calls),
  ];
}

/** The details of a row on both sides. */
export function RowDetails({ row, before, after }: Props): ReactNode {
  return (
    <>
      <div className="row">
        <RowLink row={row} side={before} label="Show before" calls={row.calls.before} />
        <RowLink row={row} side={after} label="Show after" calls={row.calls.after} />
        {!isRow(row) && row.name !== '' && !isRest(row) && (
          <Goto to={{ search: row.name, options: { only: 'all' } }} className="button">
            Show its operators
          </Goto>
        )}
      </div>
      <Facts className="fields" facts={factsOf(row)} />
    </>
  );
}
