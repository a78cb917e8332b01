import { type ReactNode, useMemo } from 'react';
import type { Change, Table } from '../../api/types.gen';
import { change, count, relativeChange } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Button } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { type Segment, useSegments } from '../../widgets/segmented';
import { DataTable } from '../../widgets/table';
import type { Look } from '../../widgets/table/cell';
import { deltaOf } from './phrases';
import { RowDetails } from './row_details';
import {
  type AnyRow,
  changeOf,
  type Figure,
  identityOf,
  isNoiseRow,
  isOf,
  isOnDevice,
  isRow,
  type Only,
  rowsTable,
  type StatusLabels,
  shapesOf,
} from './rows';
import { nameOf, type Side } from './sides';

interface Props {
  readonly rows: readonly AnyRow[];
  /** The id of the tab. */
  readonly name: 'operators' | 'device' | 'modules';
  readonly label: string;
  readonly labels: StatusLabels;
  readonly before: Side;
  readonly after: Side;
  /** The text without rows. */
  readonly none: string;
}

const ONLY: readonly (readonly [Only, string, string])[] = [
  ['changed', 'Changed', 'Statistically significant changes'],
  ['slower', 'Slower', 'Significantly more time'],
  ['faster', 'Faster', 'Significantly less time'],
  ['added', 'New', 'Only after'],
  ['gone', 'Gone', 'Only before'],
  ['all', 'All', 'Insignificant changes are grey'],
];

function segmentsOf(rows: readonly AnyRow[]): Segment<Only>[] {
  return ONLY.map(([id, label, title]) => {
    const size = rows.filter((row) => isOf(row, id)).length;
    return { id, label: `${label} ${count(size)}`, title, isDisabled: size === 0 };
  });
}

const SELF: readonly Segment<Figure>[] = [
  { id: 'either', label: 'Time', title: 'Device time if there is any, else host time' },
  { id: 'device', label: 'Device', title: 'Device time per step, excluding callees' },
  { id: 'host', label: 'Host', title: 'Host time per step, excluding callees' },
];
const NESTED = 'per step, including callees: nested calls count in both';
const TOTALS: readonly Segment<Figure>[] = [
  { id: 'device-total', label: 'Device total', title: `Device time ${NESTED}` },
  { id: 'host-total', label: 'Host total', title: `Host time ${NESTED}` },
];

/** The selectable times; device work has only one. */
function figuresOf(rows: readonly AnyRow[], name: Props['name']): readonly Segment<Figure>[] {
  if (name === 'device') return [];
  const all = [...SELF, ...(name === 'operators' ? TOTALS : [])];
  const onHost = all.filter(({ id }) => id === 'host' || id === 'host-total');
  return isOnDevice(rows) ? all : onHost;
}

const KINDS: Readonly<Record<string, string>> = {
  kernel: 'kernels',
  copy: 'copies',
  'memory-set': 'memory sets',
};

interface ChipProps {
  readonly kind: string;
  readonly onClear: () => void;
}

/** The kind that the table is filtered to; a click removes the filter. */
function KindChip({ kind, onClear }: ChipProps): ReactNode {
  const text = KINDS[kind] ?? kind;
  return (
    <Button className="tag" onClick={onClear} title={`Show more than ${text}`}>
      only {text} <Icon name="close" size={13} />
    </Button>
  );
}

interface BarProps {
  readonly of: Change;
  /** The largest difference of all rows: a full bar. */
  readonly scale: number;
}

/** A bar to the right for more, to the left for less. */
function DeltaBar({ of, scale }: BarProps): ReactNode {
  const share = scale > 0 ? deltaOf(of) / scale : 0;
  return (
    <span className="delta-bar" aria-hidden="true">
      <span
        style={{ left: `${50 + Math.min(0, share) * 50}%`, width: `${Math.abs(share) * 50}%` }}
      />
    </span>
  );
}

const TONES: Readonly<Record<string, string>> = { more: 'tone-worse', less: 'tone-better' };

/** More time is worse, less is better; insignificant changes are neutral. */
function lookOf(rows: readonly AnyRow[], figure: Figure): Look {
  const changes = rows.map((row) => changeOf(row, figure));
  const scale = changes.reduce((most, of) => Math.max(most, Math.abs(deltaOf(of))), 0);
  return {
    rowClass: (at) => (rows[at] && isNoiseRow(rows[at]) ? 'row-noise' : ''),
    cell: ({ key, unit }, at) => {
      const [row, of] = [rows[at], changes[at]];
      if (!row || !of) return undefined;
      const className = TONES[of.verdict] ?? '';
      if (key === 'name') {
        return { after: <span className="row-shapes">{shapesOf(row)}</span> };
      }
      if (key === 'status') return { className: `row-status status-${row.status}` };
      if (key === 'relative') return { className, text: relativeChange(of.before, of.after) };
      if (key !== 'delta') return undefined;
      const before = <DeltaBar of={of} scale={scale} />;
      return { className, before, text: change(deltaOf(of), unit) };
    },
  };
}

interface Shown {
  readonly rows: readonly AnyRow[];
  readonly table: Table;
  readonly look: Look;
}

/** The changed rows with search, filters and export. */
export function RowsTable({ rows, name, label, labels, before, after, none }: Props): ReactNode {
  const { location, go } = useNavigation();
  const { options } = location;
  const defaultOnly: Only = rows.some((row) => isOf(row, 'changed')) ? 'changed' : 'all';
  const [only, onlySegments] = useSegments<Only>('only', {
    label: 'Rows',
    segments: segmentsOf(rows),
    usual: defaultOnly,
  });
  const figures = figuresOf(rows, name);
  const [figure, figureSegments] = useSegments<Figure>('figure', {
    label: 'Time',
    segments: figures,
    usual: figures[0]?.id ?? 'either',
  });
  const kind = name === 'device' ? (options.kind ?? null) : null;
  const shown = useMemo<Shown>(() => {
    const of = rows.filter(
      (row) => isOf(row, only) && (kind === null || (isRow(row) && row.kind === kind)),
    );
    const table = rowsTable(of, figure, labels);
    return { rows: of, table: { ...table, empty: 'No row matches.' }, look: lookOf(of, figure) };
  }, [rows, only, kind, figure, labels]);
  if (rows.length === 0) return <p className="muted rows-none">{none}</p>;
  return (
    <DataTable
      table={shown.table}
      name={`compare-${name}`}
      label={label}
      traceName={[nameOf(before), nameOf(after)]}
      about={{ before: nameOf(before), after: nameOf(after), figure, only }}
      isStale={false}
      identity={identityOf(rows)}
      look={shown.look}
      details={(at) => {
        const row = shown.rows[at];
        return row && <RowDetails row={row} before={before} after={after} />;
      }}
      tools={
        <>
          {onlySegments}
          {figures.length > 1 && figureSegments}
          {kind !== null && (
            <KindChip
              kind={kind}
              onClear={() => go({ options: withOptions(options, { kind: null }) }, 'replace')}
            />
          )}
        </>
      }
    />
  );
}
