import type { ReactNode } from 'react';
import type { Change, Row } from '../../api/types.gen';
import { change, quantity, quantityExact, relativeChange } from '../../core/format';
import { Copy } from '../../widgets/copy';
import { Drawer } from '../../widgets/drawer';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { deltaOf, STATUS_LABELS, significanceOf } from './phrases';
import { type AnyRow, isRow, rowName } from './rows';
import type { Side } from './sides';

interface Props {
  readonly row: AnyRow;
  readonly before: Side;
  readonly after: Side;
  readonly close: () => void;
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

const text = (label: string, value: string): Fact => value !== '' && [label, value];

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

function factsOf(row: AnyRow): Fact[] {
  const shared: Fact[] = [
    text('Change', STATUS_LABELS[row.status]),
    changed('Device time per step', row.device),
    changed('Host time per step', row.host),
  ];
  if (!isRow(row)) return [...shared, changed('Calls per step', row.calls)];
  return [
    ...shared,
    isHost(row) && changed('Device time, including callees', row.device_total),
    isHost(row) && changed('Host time, including callees', row.host_total),
    changed('Calls per step', row.calls),
    text('Kind', row.kind),
    text('In module', row.module),
    text('Launched by', row.operator),
    text('Shapes before', row.shapes_before.join('; ')),
    text('Shapes after', row.shapes_after.join('; ')),
    text('Matched by', row.matched_by || 'nothing: it is on one side only'),
  ];
}

/** The details of a row on both sides. */
export function RowDrawer({ row, before, after, close }: Props): ReactNode {
  const name = rowName(row);
  return (
    <Drawer title="Before and after" close={close}>
      <p className="field-name mono">{name}</p>
      <div className="row">
        <Copy text={name} label="Copy name" />
        <RowLink row={row} side={before} label="Show before" calls={row.calls.before} />
        <RowLink row={row} side={after} label="Show after" calls={row.calls.after} />
      </div>
      {!isRow(row) && row.name !== '' && (
        <p>
          <Goto to={{ search: row.name, options: { only: 'all' } }} className="button">
            Show its operators
          </Goto>
        </p>
      )}
      <Facts className="fields" facts={factsOf(row)} />
    </Drawer>
  );
}
