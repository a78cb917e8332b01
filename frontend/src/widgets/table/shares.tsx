import { type ReactNode, useMemo } from 'react';
import type { Column, Table } from '../../api/types.gen';
import { plural, quantity, quantityExact, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { ShownTable } from '.';
import { cellOf, type Rows, sumOf, wholeName } from './rows';

const MOST_PARTS = 9;
/** Smaller parts are merged: they would be too narrow to click. */
const LEAST_SHARE = 0.03;

export interface SharePart {
  readonly at: number;
  readonly value: number;
}

/** The largest values of a column, descending. */
export function largestOf(table: Table, key: string, rows: Rows, most: number): SharePart[] {
  const parts: SharePart[] = [];
  for (const at of rows) {
    const value = cellOf(table, key, at);
    if (
      typeof value !== 'number' ||
      value <= (parts.length < most ? 0 : (parts.at(-1)?.value ?? 0))
    )
      continue;
    const index = parts.findIndex((part) => part.value < value);
    parts.splice(index < 0 ? parts.length : index, 0, { at, value });
    if (parts.length > most) parts.pop();
  }
  return parts;
}

/** The divided column: the sort column, if its values can be added up. */
function dividedColumn({ table, sort }: ShownTable): Column | undefined {
  const fits = (key: string): boolean => (table.sums ?? []).includes(key);
  const divided = [sort.key, table.sort].find(fits);
  return table.columns.find((column) => column.key === divided);
}

const tint = (index: number): string =>
  `color-mix(in srgb, var(--accent) ${Math.max(14, 56 - index * 6)}%, var(--surface))`;

interface Props {
  readonly shown: ShownTable;
  readonly children?: ReactNode;
}

/** A bar of the largest rows' fractions of the sum; a click selects the row. */
export function Shares({ shown, children }: Props): ReactNode {
  const { table, rows, selected, select } = shown;
  const column = dividedColumn(shown);
  const key = column?.key ?? '';
  const whole = useMemo(() => sumOf(table, key, rows) ?? 0, [table, key, rows]);
  const parts = useMemo(
    () =>
      largestOf(table, key, rows, MOST_PARTS).filter((part) => part.value / whole >= LEAST_SHARE),
    [table, key, rows, whole],
  );
  if (!column || whole <= 0) return null;
  const others = whole - parts.reduce((sum, part) => sum + part.value, 0);
  return (
    <div className="shares wrap bar">
      <div className="shares-main">
        <p className="shares-title ellipsis note">
          {column.label}{' '}
          <strong title={quantityExact(whole, column.unit)}>{quantity(whole, column.unit)}</strong>{' '}
          in {plural(rows.length, 'row')}
        </p>
        <ul className="shares-bar" aria-label={`Shares of ${column.label}`}>
          {parts.map((part, index) => {
            const figures = `${quantity(part.value, column.unit)}, ${share(part.value / whole)}`;
            const seen = shortName(
              String(cellOf(table, table.columns[0]?.key ?? '', part.at) ?? ''),
            );
            return (
              <li key={part.at} style={{ flexGrow: part.value, background: tint(index) }}>
                <button
                  type="button"
                  title={`${wholeName(table, part.at)}: ${figures}`}
                  aria-label={`${seen}: ${figures}`}
                  aria-pressed={part.at === selected}
                  onClick={() => select(part.at === selected ? null : part.at)}
                >
                  {seen}
                </button>
              </li>
            );
          })}
          {others / whole >= LEAST_SHARE && (
            <li
              className="muted"
              style={{ flexGrow: others }}
              title={`${plural(rows.length - parts.length, 'other row')}: ${quantity(others, column.unit)}, ${share(others / whole)}`}
            >
              <span>{plural(rows.length - parts.length, 'other')}</span>
            </li>
          )}
        </ul>
      </div>
      {children}
    </div>
  );
}

/** With more unknown time than this, no fraction is shown. */
const MOSTLY = 0.9;

interface UseProps {
  readonly label: string;
  /** The whole: `of kernel time`. */
  readonly of: string;
  readonly usedNs: number;
  readonly untoldNs: number;
  readonly wholeNs: number;
}

/** A bar of the time that uses a feature, does not, or is unknown. */
export function UseBar({ label, of, usedNs, untoldNs, wholeNs }: UseProps): ReactNode {
  if (wholeNs <= 0) return null;
  const [used, untold] = [usedNs / wholeNs, untoldNs / wholeNs];
  const words = [
    `${share(used)} ${of} uses ${label}`,
    `${share(Math.max(0, 1 - used - untold))} does not`,
    ...(untold > 0 ? [`unknown for ${share(untold)}`] : []),
  ].join(', ');
  return (
    <div className="shares-use" title={words}>
      <p className="shares-title ellipsis note">
        {label}{' '}
        {untold > MOSTLY ? (
          'unknown: the kernel names do not show it'
        ) : (
          <>
            <strong>{share(used)}</strong> {of}
          </>
        )}
      </p>
      <div className="use-bar" role="img" aria-label={words}>
        <span className="use-yes" style={{ width: `${used * 100}%` }} />
        <span className="use-untold" style={{ width: `${untold * 100}%` }} />
      </div>
    </div>
  );
}
