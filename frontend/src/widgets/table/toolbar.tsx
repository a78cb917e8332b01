import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Column } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { Icon } from '../icon';
import { Menu } from '../menu';
import { Segmented } from '../segmented';
import type { ColumnsShown } from './columns_shown';
import type { Density } from './density';

const TYPING_MS = 120;

const SEARCH_HELP = [
  'Words are looked for in all names, in any case.',
  '/conv|gemm/ is a regular expression.',
  'shape:4096, stream:7, module:"Linear_0" look into one column.',
  'calls:>100, mean:>=1ms, share:>5% compare numbers.',
  'All conditions must hold.',
].join('\n');

interface SearchProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  /** Goes to what was found, with Shift to what was found before; left out where nothing is gone to. */
  readonly onEnter?: (text: string, by: -1 | 1) => void;
  /** What is wrong with a regular expression. */
  readonly invalid: string | null;
  /** What else is wrong with what was typed. */
  readonly problem?: string | null;
  /** What it looks through. */
  readonly label?: string;
  /** Whether it knows conditions on columns. */
  readonly hasConditions?: boolean;
  /** A condition that this table has a column for. */
  readonly example?: string | undefined;
}

/** Search that follows the URL, and writes into it once typing rests. */
export function SearchBox(props: SearchProps): ReactNode {
  const { value, onChange, onEnter, invalid, problem = null, label = 'Search the table' } = props;
  const { hasConditions = true, example = 'calls:>10' } = props;
  const wrong = invalid === null ? problem : `Not a regular expression: ${invalid}`;
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
  const entered = (by: -1 | 1): void => {
    if (typed !== written.current) {
      written.current = typed;
      onChange(typed);
    }
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
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
            entered(event.shiftKey ? -1 : 1);
          }
          if (event.key !== 'Escape') return;
          event.preventDefault();
          if (typed === '') event.currentTarget.blur();
          else setTyped('');
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
  shape: 'Shape',
  stack: 'Stack',
  module: 'Module',
  launch: 'Launch',
  stream: 'Stream',
};
const GROUP_HELP: Readonly<Record<string, string>> = {
  name: 'One row a name',
  shape: 'One row a name and the shapes of its inputs',
  stack: 'One row a name and the Python functions around it',
  module: 'One row a name and the nn.Module that it ran in',
  launch: 'One row a name, launching operator, grid and block',
  stream: 'One row a name, device and stream',
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
  /** In place of showing the usual columns: their widths may be chosen, too. */
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
      <button type="button" className="button quiet" onClick={onUsual ?? choice.reset}>
        The usual columns{onUsual ? ' and widths' : ''}
      </button>
      {onDensity && (
        <label className="option">
          <input
            type="checkbox"
            checked={density === 'compact'}
            onChange={(event) => onDensity(event.target.checked ? 'compact' : 'comfortable')}
          />
          Low rows: more of them in sight
        </label>
      )}
    </Menu>
  );
}

interface CountProps {
  readonly shown: number;
  readonly all: number;
  /** How many there are on the server, where it sent the first of them. */
  readonly whole?: number | null;
}

/** How many rows are shown of how many. */
export function RowCount({ shown, all, whole = null }: CountProps): ReactNode {
  const of = shown === all ? plural(all, 'row') : `${count(shown)} of ${plural(all, 'row')}`;
  return (
    <span className="row-count muted" role="status">
      {whole !== null && whole > all ? `${of}, the first of ${count(whole)} in this order` : of}
    </span>
  );
}
