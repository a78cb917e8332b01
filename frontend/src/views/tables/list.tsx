import { type ReactNode, useState } from 'react';
import type { TableInfo } from '../../api/types.gen';
import { plural } from '../../core/format';
import { matcherOf } from '../../core/search';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly tables: readonly TableInfo[];
  readonly selected: string;
}

/** The option in place of a table's name for queries over all of them. */
export const QUERY = 'query';

/** Tables that match in name, title, meaning or a column. */
export function tablesMatching(tables: readonly TableInfo[], search: string): readonly TableInfo[] {
  const matcher = matcherOf(search);
  if (matcher.kind !== 'test') return tables;
  return tables.filter(({ name, title, meaning, columns }) =>
    [name, title, meaning, ...columns].some((text) => matcher.test(text)),
  );
}

/** All tables by title; the search covers their columns, too. */
export function TableList({ tables, selected }: Props): ReactNode {
  const { location } = useNavigation();
  const [search, setSearch] = useState('');
  const shown = tablesMatching(tables, search);
  return (
    <nav className="table-list column" aria-label="Tables">
      <div className="search">
        <Icon name="search" size={15} />
        <input
          type="search"
          aria-label="Find a table"
          placeholder={`Find one of ${plural(tables.length, 'table')}`}
          spellCheck={false}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </div>
      {import.meta.env.MODE !== 'shared' && (
        <Goto
          to={{
            search: '',
            sort: null,
            options: withOptions(location.options, { row: null, rows: null, table: QUERY }),
          }}
          className="query-link option flex"
          title="SQL over all tables"
          current={selected === QUERY}
        >
          <Icon name="search" size={15} />
          Query
        </Goto>
      )}
      <ul>
        {shown.map(({ name, title, meaning, is_of_run }) => (
          <li key={name}>
            <Goto
              to={{
                search: '',
                sort: null,
                options: withOptions(location.options, { row: null, rows: null, table: name }),
              }}
              className="table-name option flex"
              title={`${name}\n${meaning}`}
              current={name === selected}
            >
              {title}
              {is_of_run && <span className="tag">run</span>}
            </Goto>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p className="muted">No table matches “{search}”.</p>}
    </nav>
  );
}
