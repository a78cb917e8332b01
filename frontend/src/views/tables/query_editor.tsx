/** The text of a query, with completion of the names of tables and columns. */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { movedIndex } from '../../core/list_keys';
import {
  type Completion,
  type CompletionTable,
  completionAt,
  positionOf,
  type Suggestion,
} from '../../core/sql_completion';

interface Props {
  readonly sql: string;
  readonly tables: readonly CompletionTable[];
  readonly isInvalid: boolean;
  readonly onChange: (sql: string) => void;
  readonly onRun: () => void;
}

const LEAST_LINES = 4;
const MOST_LINES = 14;

interface Open extends Completion {
  readonly caret: number;
  readonly active: number;
}

interface SuggestionsProps {
  readonly id: string;
  readonly open: Open;
  readonly choose: (suggestion: Suggestion) => void;
}

function Suggestions({ id, open, choose }: SuggestionsProps): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[open.active]?.scrollIntoView?.({ block: 'nearest' });
  }, [open.active]);
  return (
    <div role="listbox" id={id} aria-label="Names" tabIndex={-1} ref={list}>
      {open.suggestions.map((suggestion, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the text box handles the keys
        <div
          key={suggestion.text}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === open.active}
          className="option"
          title={suggestion.meaning}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => choose(suggestion)}
        >
          <code className="grow ellipsis">{suggestion.text}</code>
          <span className="note">{suggestion.note}</span>
        </div>
      ))}
    </div>
  );
}

/** The place of the popup: below the name that is typed, in letters and lines of the text. */
function placeOf(sql: string, from: number, box: HTMLTextAreaElement | null): React.CSSProperties {
  const { line, column } = positionOf(sql, from);
  return {
    left: `calc(var(--query-padding) + ${column}ch - ${box?.scrollLeft ?? 0}px)`,
    top: `calc(var(--query-padding) + ${line + 1} * var(--query-line) - ${box?.scrollTop ?? 0}px)`,
  };
}

export function QueryEditor({ sql, tables, isInvalid, onChange, onRun }: Props): ReactNode {
  const id = useId();
  const box = useRef<HTMLTextAreaElement>(null);
  const [open, setOpen] = useState<Open | null>(null);
  const caretAfter = useRef<number | null>(null);
  useEffect(() => {
    if (caretAfter.current === null) return;
    box.current?.setSelectionRange(caretAfter.current, caretAfter.current);
    caretAfter.current = null;
  });
  const suggest = (text: string, caret: number, isRequested = false): void => {
    const completion = completionAt(text, caret, tables, isRequested);
    setOpen(completion.suggestions.length > 0 ? { ...completion, caret, active: 0 } : null);
  };
  const choose = ({ text }: Suggestion): void => {
    if (!open) return;
    caretAfter.current = open.from + text.length;
    onChange(sql.slice(0, open.from) + text + sql.slice(open.caret));
    setOpen(null);
    box.current?.focus();
  };
  /** Whether the key belongs to the open suggestions. */
  const pressInList = (key: string): boolean => {
    if (!open) return false;
    const next = movedIndex(key, open.active, open.suggestions.length, {
      isTyped: true,
      isRing: true,
    });
    const active = open.suggestions[open.active];
    if (next !== null) setOpen({ ...open, active: next });
    else if ((key === 'Enter' || key === 'Tab') && active) choose(active);
    else if (key === 'Escape') setOpen(null);
    else return false;
    return true;
  };
  const press = (event: KeyboardEvent<HTMLTextAreaElement>): boolean => {
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key === 'Enter') {
      setOpen(null);
      onRun();
      return true;
    }
    if (isCommand && event.key === ' ') {
      suggest(sql, event.currentTarget.selectionStart, true);
      return true;
    }
    return !isCommand && !event.shiftKey && pressInList(event.key);
  };
  const lines = Math.max(LEAST_LINES, Math.min(MOST_LINES, sql.split('\n').length + 1));
  return (
    <div className="query-text">
      <textarea
        ref={box}
        role="combobox"
        aria-label="SQL query"
        aria-expanded={open !== null}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={open ? `${id}-${open.active}` : undefined}
        aria-invalid={isInvalid}
        placeholder="SELECT … FROM kernels"
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        wrap="off"
        rows={lines}
        value={sql}
        onChange={(event) => {
          const { value, selectionStart } = event.target;
          onChange(value);
          suggest(value, selectionStart);
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || !press(event)) return;
          event.preventDefault();
          event.stopPropagation();
        }}
        onKeyUp={(event) => {
          if (open && event.currentTarget.selectionStart !== open.caret) setOpen(null);
        }}
        onClick={() => setOpen(null)}
        onScroll={() => setOpen(null)}
        onBlur={() => setOpen(null)}
      />
      {open && (
        <div className="query-suggestions popup" style={placeOf(sql, open.from, box.current)}>
          <Suggestions id={id} open={open} choose={choose} />
        </div>
      )}
    </div>
  );
}
