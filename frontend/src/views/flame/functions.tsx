// biome-ignore-all lint/a11y/useSemanticElements: rows are positioned in a window, which a <table> cannot be
// biome-ignore-all lint/a11y/useFocusableInteractive: the cells contain buttons
/** The functions of a flame graph as a table: self value, total, calls. */
import { type ReactNode, useMemo } from 'react';
import type { FlameFunctions } from '../../api/types.gen';
import { count, quantity } from '../../core/format';
import type { Matcher } from '../../core/search';
import { useNavigation } from '../../state/navigation';
import { Windowed } from '../../widgets/windowed';
import { kindColour } from './colours';
import { changeLabel, frameName, hasCallCount, shareOf, whole } from './labels';
import {
  type FunctionRow,
  isComparedIn,
  type Order,
  orderFrom,
  rowsOf,
  type SortKey,
  sorted,
  stepsIn,
} from './listing';

const ROW_PX = 27;

interface Heading {
  readonly key: SortKey;
  readonly label: string;
  readonly title: string;
}

const NAME: Heading = { key: 'name', label: 'Function', title: 'The called function' };
const OWN: Heading = { key: 'own', label: 'Self', title: 'Excluding callees' };
const TOTAL: Heading = {
  key: 'total',
  label: 'Total',
  title: 'Including callees; recursive calls count once',
};
const CHANGE: Heading = {
  key: 'change',
  label: 'Change',
  title: 'Change of the self value from the baseline; sorted by magnitude',
};

function headings(list: FlameFunctions): readonly Heading[] {
  if (isComparedIn(list)) return [CHANGE, OWN, TOTAL];
  if (list.unit === 'bytes') {
    return [
      OWN,
      TOTAL,
      { key: 'calls', label: 'Allocations', title: 'Allocations of the function itself' },
    ];
  }
  const title = 'Number of calls; – if it appears only in the stacks of others';
  return [OWN, TOTAL, { key: 'calls', label: 'Calls', title }];
}

function cellOf(row: FunctionRow, list: FlameFunctions, key: SortKey): string {
  if (key === 'calls') return hasCallCount(row, list.unit) ? count(row.calls) : '–';
  if (key === 'change') return changeLabel(row.change, list.unit);
  return quantity(whole(key === 'own' ? row.own : row.total), list.unit);
}

interface HeadProps {
  readonly columns: readonly Heading[];
  readonly order: Order;
}

function Head({ columns, order }: HeadProps): ReactNode {
  const { go } = useNavigation();
  return (
    <div role="row" aria-rowindex={1} className="flame-row option-row flame-head">
      {[NAME, ...columns].map(({ key, label, title }) => {
        const isSorted = order.key === key;
        const descending = isSorted ? !order.descending : key !== 'name';
        const sort = order.descending ? 'descending' : 'ascending';
        return (
          <span
            role="columnheader"
            key={key}
            className={key === 'name' ? 'flex grow' : 'flame-cell flex'}
            aria-sort={isSorted ? sort : 'none'}
          >
            <button
              type="button"
              title={title}
              onClick={() => go({ sort: { key, descending } }, 'replace')}
            >
              {label}
              {isSorted && <span aria-hidden="true">{order.descending ? ' ↓' : ' ↑'}</span>}
            </button>
          </span>
        );
      })}
    </div>
  );
}

interface Props {
  readonly list: FlameFunctions;
  readonly matcher: Matcher;
  /** The only function shown. */
  readonly selected: string | null;
  readonly onMark: (name: string | null) => void;
  readonly onChoose: (name: string) => void;
}

interface RowProps extends Props {
  readonly row: FunctionRow;
  readonly columns: readonly Heading[];
  readonly largest: number;
  readonly at: number;
}

function Row(props: RowProps): ReactNode {
  const { row, columns, largest, at, list, selected, onMark, onChoose } = props;
  const share = shareOf(row.own, list.whole / stepsIn(list, list.steps));
  return (
    <div
      role="row"
      aria-rowindex={at + 2}
      className={row.name === selected ? 'flame-row option-row chosen' : 'flame-row option-row'}
      onPointerEnter={() => onMark(row.name)}
      onPointerLeave={() => onMark(null)}
    >
      <span role="rowheader" className="flex grow">
        <span className="swatch" style={{ background: kindColour(row.kind) }} />
        <button type="button" title={row.name} onClick={() => onChoose(row.name)}>
          {frameName(row.name)}
        </button>
      </span>
      {columns.map(({ key }) => (
        <span
          role="cell"
          key={key}
          className="flame-cell flex"
          title={key === 'own' ? `${share} of all` : undefined}
        >
          {key === 'own' && <i style={{ width: `${(row.own / Math.max(1, largest)) * 100}%` }} />}
          <span>{cellOf(row, list, key)}</span>
        </span>
      ))}
    </div>
  );
}

export function Functions(props: Props): ReactNode {
  const { list, matcher } = props;
  const { location } = useNavigation();
  const { key, descending } = orderFrom(location.sort, isComparedIn(list));
  const every = useMemo(() => rowsOf(list), [list]);
  const rows = useMemo(() => {
    const shown = matcher.kind === 'test' ? every.filter(({ name }) => matcher.test(name)) : every;
    return sorted(shown, { key, descending });
  }, [every, matcher, key, descending]);
  const columns = headings(list);
  const largest = every.reduce((most, { own }) => Math.max(most, own), 0);
  return (
    <section className="flame-functions column" aria-label="Functions">
      <div
        role="table"
        aria-label="Functions"
        aria-rowcount={rows.length + 1}
        className="flame-table column"
      >
        <Head columns={columns} order={{ key, descending }} />
        <div role="rowgroup" className="flame-rows">
          <Windowed
            count={rows.length}
            rowPx={ROW_PX}
            active={-1}
            render={(at) => {
              const row = rows[at];
              return row && <Row {...props} {...{ row, columns, largest, at }} />;
            }}
          />
        </div>
      </div>
      <p className="flame-foot note" role="status">
        {count(rows.length)} of {count(list.all_count)} functions
      </p>
    </section>
  );
}
