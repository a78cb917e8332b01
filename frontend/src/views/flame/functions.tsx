/** The functions of a flame graph as a table: self value, total, calls. */
import { type ReactNode, useMemo } from 'react';
import type { FlameFunctions, Table } from '../../api/types.gen';
import { count, quantity } from '../../core/format';
import type { Matcher } from '../../core/search';
import { type Theme, useTheme } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import type { Look } from '../../widgets/table/cell';
import { cellOf, orderedRows } from '../../widgets/table/rows';
import { SortedGrid } from '../../widgets/table/sorted_grid';
import { kindColour } from './colours';
import { changeLabel, frameName, shareOf, whole } from './labels';
import { functionsTable, orderFrom, sortColumn } from './listing';

interface Props {
  readonly list: FlameFunctions;
  readonly matcher: Matcher;
  /** The only function shown. */
  readonly selected: string | null;
  readonly onMark: (name: string | null) => void;
  readonly onChoose: (name: string) => void;
}

/** A swatch before each name, and a bar behind each self value. */
function lookOf(table: Table, list: FlameFunctions, theme: Theme): Look {
  const largest = list.own.reduce((most, own) => Math.max(most, own), 1);
  const number = (key: string, at: number): number => Number(cellOf(table, key, at) ?? 0);
  return {
    cell: ({ key, unit }, at) => {
      if (key === 'name') {
        const background = kindColour(String(cellOf(table, 'kind', at)), theme);
        const swatch = <span className="swatch" style={{ background }} />;
        return { before: swatch, text: frameName(String(cellOf(table, key, at))) };
      }
      if (key === 'change') return { text: changeLabel(number(key, at), unit) };
      if (unit === 'count') return undefined;
      const text = quantity(whole(number(key, at)), unit);
      if (key !== 'own') return { text };
      const share = shareOf(list.own[at] ?? 0, list.whole);
      const width = `${((list.own[at] ?? 0) / largest) * 100}%`;
      return {
        text,
        before: <i className="flame-bar" title={`${share} of all`} style={{ width }} />,
      };
    },
  };
}

export function Functions({ list, matcher, selected, onMark, onChoose }: Props): ReactNode {
  const { location, go } = useNavigation();
  const theme = useTheme();
  const table = useMemo(() => functionsTable(list), [list]);
  const look = useMemo(() => lookOf(table, list, theme), [table, list, theme]);
  const sort = orderFrom(location.sort, table);
  const order = orderedRows(table, sortColumn(sort), sort.descending);
  const rows = useMemo(
    () =>
      matcher.kind === 'test' ? order.filter((at) => matcher.test(list.names[at] ?? '')) : order,
    [order, matcher, list],
  );
  const nameOf = (at: number | null): string | null =>
    at === null ? null : (list.names[at] ?? null);
  return (
    <section className="flame-functions column" aria-label="Functions">
      <SortedGrid
        table={table}
        name="flame-functions"
        label="Functions"
        sort={sort}
        rows={rows}
        look={look}
        selected={selected === null ? null : list.names.indexOf(selected)}
        onSort={(next) => go({ sort: next }, 'replace')}
        onSelect={(at) => onChoose(nameOf(at) ?? selected ?? '')}
        onHover={(at) => onMark(nameOf(at))}
      />
      <p className="flame-foot note" role="status">
        {count(rows.length)} of {count(list.all_count)} functions
      </p>
    </section>
  );
}
