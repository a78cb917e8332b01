import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Column } from '../../api/types.gen';
import { count } from '../../core/format';
import { Icon } from '../icon';
import { Menu } from '../menu';
import type { ColumnsShown } from './columns_shown';

const TYPING_MS = 200;

interface SearchProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly invalid: string | null;
}

/** Search that follows the URL, and writes into it once typing rests. */
export function SearchBox({ value, onChange, invalid }: SearchProps): ReactNode {
  const [typed, setTyped] = useState(value);
  const written = useRef(value);
  useEffect(() => {
    if (value === written.current) return;
    written.current = value;
    setTyped(value); // the URL changed elsewhere: a link, or Back
  }, [value]);
  useEffect(() => {
    if (typed === written.current) return undefined;
    const timer = setTimeout(() => {
      written.current = typed;
      onChange(typed);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, onChange]);
  return (
    <div className="search">
      <Icon name="search" size={15} />
      <input
        type="search"
        data-search
        aria-label="Search the table"
        aria-invalid={invalid !== null}
        placeholder="Search, or /regex/"
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.preventDefault();
          if (typed === '') event.currentTarget.blur();
          else setTyped('');
        }}
      />
      {invalid !== null && (
        <span className="search-invalid" role="alert">
          Not a regular expression: {invalid}
        </span>
      )}
    </div>
  );
}

const GROUP_WORDS: Readonly<Record<string, string>> = {
  name: 'Name',
  shape: 'Name + shape',
  launch: 'Launching operator',
};

interface GroupProps {
  readonly groups: readonly string[];
  readonly value: string;
  readonly onChange: (group: string) => void;
}

export function GroupBy({ groups, value, onChange }: GroupProps): ReactNode {
  if (groups.length < 2) return null;
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">Group by</legend>
      {groups.map((group) => (
        <label key={group} className={group === value ? 'segment on' : 'segment'}>
          <input
            type="radio"
            name="group"
            className="visually-hidden"
            checked={group === value}
            onChange={() => onChange(group)}
          />
          {GROUP_WORDS[group] ?? group}
        </label>
      ))}
    </fieldset>
  );
}

interface ChooserProps {
  readonly columns: readonly Column[];
  readonly choice: ColumnsShown;
}

export function ColumnChooser({ columns, choice }: ChooserProps): ReactNode {
  return (
    <Menu
      label={
        <>
          <Icon name="columns" size={15} /> Columns
        </>
      }
    >
      {columns.slice(1).map((column) => (
        <label key={column.key} className="menu-item" title={column.help}>
          <input
            type="checkbox"
            checked={choice.shown[column.key] ?? false}
            onChange={(event) => choice.show(column.key, event.target.checked)}
          />
          {column.label}
        </label>
      ))}
      <button type="button" className="button quiet" onClick={choice.reset}>
        Show the usual columns
      </button>
    </Menu>
  );
}

export function RowCount({
  shown,
  all,
}: {
  readonly shown: number;
  readonly all: number;
}): ReactNode {
  return (
    <span className="row-count" role="status">
      {shown === all ? `${count(all)} rows` : `${count(shown)} of ${count(all)} rows`}
    </span>
  );
}
