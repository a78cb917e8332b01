import type { ReactNode } from 'react';
import type { Change, Row } from '../../api/types.gen';
import { change, quantity, quantityExact, relativeChange } from '../../core/format';
import type { Patch } from '../../state/navigation';
import { Copy } from '../../widgets/copy';
import { Drawer } from '../../widgets/drawer';
import { Goto } from '../../widgets/goto';
import { type AnyRow, isRow, rowName } from './rows';
import type { Side } from './sides';
import { deltaOf, STATUS_WORDS, sureness } from './words';

interface Props {
  readonly row: AnyRow;
  readonly before: Side;
  readonly after: Side;
  readonly close: () => void;
}

function Figure({ label, of }: { readonly label: string; readonly of: Change }): ReactNode {
  if (of.before === 0 && of.after === 0) return null;
  const relative = relativeChange(of.before, of.after);
  const exact = `${quantityExact(of.before, of.unit)} → ${quantityExact(of.after, of.unit)}`;
  return (
    <div className="field">
      <dt>{label}</dt>
      <dd title={exact}>
        {quantity(of.before, of.unit)} → {quantity(of.after, of.unit)}
        <span className="field-exact">
          {change(deltaOf(of), of.unit)}
          {relative !== '' && `, ${relative}`}; {sureness(of)}
        </span>
      </dd>
    </div>
  );
}

function Words({ label, text }: { readonly label: string; readonly text: string }): ReactNode {
  if (text === '') return null;
  return (
    <div className="field">
      <dt>{label}</dt>
      <dd>{text}</dd>
    </div>
  );
}

const VIEWS: Readonly<Record<string, string>> = {
  operator: 'operators',
  annotation: 'operators',
  kernel: 'kernels',
};

/** The way to a row by itself, on one side; nothing where no view lists such rows, or it is not there. */
function Shown({
  row,
  of,
  label,
  is,
}: {
  readonly row: AnyRow;
  readonly of: Side;
  readonly label: string;
  readonly is: boolean;
}): ReactNode {
  const view = isRow(row) ? VIEWS[row.kind] : undefined;
  if (view === undefined || !is) return null;
  const to: Patch = { run: of.run.id, worker: of.worker, span: of.span, view, search: row.name };
  return (
    <Goto to={to} className="button">
      {label}
    </Goto>
  );
}

/** What runs on the host calls other things; work on a device does not. */
const isHost = ({ kind }: Row): boolean => kind === 'operator' || kind === 'annotation';

/** Everything that is known of a row on both sides. */
export function RowDrawer({ row, before, after, close }: Props): ReactNode {
  const name = rowName(row);
  return (
    <Drawer title="Before and after" close={close}>
      <p className="field-name mono">{name}</p>
      <div className="row">
        <Copy text={name} label="Copy name" />
        <Shown row={row} of={before} label="Show before" is={row.calls.before > 0} />
        <Shown row={row} of={after} label="Show after" is={row.calls.after > 0} />
      </div>
      {!isRow(row) && row.name !== '' && (
        <p>
          <Goto to={{ search: row.name, options: { only: 'all' } }} className="button">
            Show its operators
          </Goto>
        </p>
      )}
      <dl className="fields">
        <Words label="Change" text={STATUS_WORDS[row.status]} />
        <Figure label="Device time a step" of={row.device} />
        <Figure label="Host time a step" of={row.host} />
        {isRow(row) && isHost(row) && (
          <>
            <Figure label="Device time, with calls within" of={row.device_total} />
            <Figure label="Host time, with calls within" of={row.host_total} />
          </>
        )}
        <Figure label="Calls a step" of={row.calls} />
        {isRow(row) && (
          <>
            <Words label="Kind" text={row.kind} />
            <Words label="In module" text={row.module} />
            <Words label="Launched by" text={row.operator} />
            <Words label="Shapes before" text={row.shapes_before.join('; ')} />
            <Words label="Shapes after" text={row.shapes_after.join('; ')} />
            <Words label="Matched by" text={row.matched_by || 'nothing: it is on one side'} />
          </>
        )}
      </dl>
    </Drawer>
  );
}
