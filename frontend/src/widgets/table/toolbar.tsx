import type { ReactNode } from 'react';
import type { Column } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { useTyped } from '../../host/use_typed';
import { Button } from '../button';
import { Icon } from '../icon';
import { Menu } from '../menu';
import { Segmented } from '../segmented';
import type { ColumnsShown } from './columns_shown';
import type { Density } from './density';

const SEARCH_HELP = [
  'Words match all names, in any case.',
  '/conv|gemm/ is a regular expression.',
  'shape:4096, stream:7, module:"Linear_0" search one column.',
  'calls:>100, mean:>=1ms, share:>5% compare numbers.',
  'All conditions must match.',
].join('\n');

interface SearchProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  /** Moves to the next result, with Shift to the previous one. */
  readonly onEnter?: (text: string, by: -1 | 1) => void;
  /** The error of a regular expression. */
  readonly invalid: string | null;
  /** Another error of the query. */
  readonly problem?: string | null;
  readonly label?: string;
  /** Whether the search supports conditions on columns. */
  readonly hasConditions?: boolean;
  /** An example condition. */
  readonly example?: string | undefined;
}

/** A search box that follows the URL, and updates it after a pause in typing. */
export function SearchBox(props: SearchProps): ReactNode {
  const { value, onChange, onEnter, invalid, problem = null, label = 'Search the table' } = props;
  const { hasConditions = true, example = 'calls:>10' } = props;
  const wrong = invalid === null ? problem : `Not a regular expression: ${invalid}`;
  const { typed, type, flush } = useTyped(value, onChange);
  const entered = (by: -1 | 1): void => {
    flush();
    onEnter?.(typed, by);
  };
  return (
    <div className="search">
      <Icon name="search" size={15} />
      <input
        type="search"
        data-search
        aria-label={label}
        aria-invalid={wrong !== null}
        placeholder={hasConditions ? `Search, /regex/, ${example}` : 'Search, or /regex/'}
        title={hasConditions ? SEARCH_HELP : undefined}
        spellCheck={false}
        value={typed}
        onChange={(event) => type(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
            entered(event.shiftKey ? -1 : 1);
          }
          if (event.key !== 'Escape') return;
          event.preventDefault();
          if (typed === '') event.currentTarget.blur();
          else type('');
        }}
      />
      {wrong !== null && (
        <span className="search-invalid popup" role="alert">
          {wrong}
        </span>
      )}
    </div>
  );
}

const GROUP_WORDS: Readonly<Record<string, string>> = {
  name: 'Name',
  category: 'Category',
  shape: 'Shape',
  stack: 'Stack',
  module: 'Module',
  launch: 'Launch',
  stream: 'Stream',
};
const GROUP_HELP: Readonly<Record<string, string>> = {
  name: 'One row per name',
  category: 'One row per category of operators; a click lists its operators',
  shape: 'One row per name and the shapes of its inputs',
  stack: 'One row per name and the Python functions around it',
  module: 'One row per name and the nn.Module that it ran in',
  launch: 'One row per name, launching operator, grid and block',
  stream: 'One row per name, device and stream',
};

interface GroupProps {
  readonly groups: readonly string[];
  readonly value: string;
  readonly onChange: (group: string) => void;
}

export function GroupBy({ groups, value, onChange }: GroupProps): ReactNode {
  if (groups.length < 2) return null;
  return (
    <Segmented
      label="Group by"
      isLabelled
      segments={groups.map((id) => ({ id, label: GROUP_WORDS[id] ?? id, title: GROUP_HELP[id] }))}
      value={value}
      onChoose={onChange}
    />
  );
}

interface ChooserProps {
  readonly columns: readonly Column[];
  readonly choice: ColumnsShown;
  readonly density?: Density;
  readonly onDensity?: (density: Density) => void;
  /** Called instead of resetting the columns, to reset the widths as well. */
  readonly onUsual?: () => void;
}

export function ColumnChooser(props: ChooserProps): ReactNode {
  const { columns, choice, density, onDensity, onUsual } = props;
  return (
    <Menu
      label={
        <>
          <Icon name="columns" size={15} /> Columns
        </>
      }
    >
      {columns.slice(1).map((column) => (
        <label key={column.key} className="option" title={column.help}>
          <input
            type="checkbox"
            checked={choice.shown[column.key] ?? false}
            onChange={(event) => choice.show(column.key, event.target.checked)}
          />
          {column.label}
        </label>
      ))}
      <Button quiet onClick={onUsual ?? choice.reset}>
        Default columns{onUsual ? ' and widths' : ''}
      </Button>
      {onDensity && (
        <label className="option">
          <input
            type="checkbox"
            checked={density === 'compact'}
            onChange={(event) => onDensity(event.target.checked ? 'compact' : 'comfortable')}
          />
          Compact rows
        </label>
      )}
    </Menu>
  );
}

interface CountProps {
  readonly shown: number;
  readonly all: number;
  /** The number of rows on the server, if it sent only the first ones. */
  readonly whole?: number | null;
  /** The number of rows on the server that match the search, if it searched them. */
  readonly matches?: number | null;
}

/** The number of rows shown, of all rows: `12 of 4,310 rows`. */
function countWords({ shown, all, whole = null, matches = null }: CountProps): string {
  const total = whole ?? all;
  const of = shown === total ? plural(total, 'row') : `${count(shown)} of ${plural(total, 'row')}`;
  if (matches !== null) return matches > all ? `${of}: the first of ${count(matches)} matches` : of;
  if (total <= all) return of;
  return shown === all
    ? `${of}, the first in this order`
    : `${of}: only the first ${count(all)} in this order are searched`;
}

export function RowCount(props: CountProps): ReactNode {
  return (
    <span className="row-count muted" role="status">
      {countWords(props)}
    </span>
  );
}
