import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { FirstFinding, Span } from '../api/types.gen';
import { jumpsOf, matchesIn } from '../core/choices';
import { count } from '../core/format';
import { movedIndex } from '../core/list_keys';
import { Icon } from './icon';
import { usePressOutside } from './press_outside';
import { STATE_WORDS } from './reading/words';
import { Windowed } from './windowed';
import './picker.css';

export interface Choice {
  readonly key: string;
  readonly label: string;
  readonly note?: string | undefined;
  /** The rank. */
  readonly number?: number | null | undefined;
  /** Further searchable text: the host. */
  readonly about?: string | undefined;
  readonly state?: Span['state'] | undefined;
  /** The worst damage. */
  readonly damage?: Span['damage'] | undefined;
  /** The first finding. */
  readonly finding?: Pick<FirstFinding, 'severity' | 'title'> | null | undefined;
}

interface Props {
  /** The subject: `Run`. */
  readonly label: string;
  readonly choices: readonly Choice[];
  readonly value: string;
  readonly onChoose: (key: string) => void;
  /** Keys of recently used choices, listed first in a long list. */
  readonly recent?: readonly string[] | undefined;
}

const TYPE_AHEAD_FROM = 6;
const RECENT_FROM = 9;
const MOST_RECENT = 4;
const ROW_PX = 33;
const MOST_SEEN_PX = 420;

function StateDot({ state }: { readonly state: Choice['state'] }): ReactNode {
  if (!state) return null;
  return (
    <span className={`dot dot-${state}`} title={STATE_WORDS[state]}>
      <span className="visually-hidden">{STATE_WORDS[state]}</span>
    </span>
  );
}

/** The severity of the first finding; without one, the space for it. */
function FindingMark({ finding }: { readonly finding: Choice['finding'] }): ReactNode {
  if (!finding) return <span className="picker-mark" />;
  const { severity, title } = finding;
  return (
    <span className={`picker-mark flex severity-${severity}`} title={title}>
      <Icon name={severity} size={14} />
      <span className="visually-hidden">{severity}: </span>
    </span>
  );
}

/** The choices with the recently used ones first, in a long list. */
function withRecentFirst(choices: readonly Choice[], recent: readonly string[]): readonly Choice[] {
  if (choices.length < RECENT_FROM) return choices;
  const first = recent
    .flatMap((key) => choices.find((choice) => choice.key === key) ?? [])
    .slice(0, MOST_RECENT)
    .map((choice) => ({ ...choice, note: choice.note ? `recent, ${choice.note}` : 'recent' }));
  const keys = new Set(first.map(({ key }) => key));
  return [...first, ...choices.filter(({ key }) => !keys.has(key))];
}

/** Width of the longest choice in letters, since only visible rows are in the document. */
const widestOf = (choices: readonly Choice[]): number =>
  choices.reduce((most, { label, note = '' }) => Math.max(most, label.length + note.length), 0) +
  16;

function OptionWords({ choice }: { readonly choice: Choice }): ReactNode {
  return (
    <>
      <StateDot state={choice.state} />
      {choice.finding !== undefined && <FindingMark finding={choice.finding} />}
      <span className="picker-option-label ellipsis grow">{choice.label}</span>
      {choice.state && choice.state !== 'ready' && (
        <span className="note" aria-hidden="true">
          {STATE_WORDS[choice.state]}
        </span>
      )}
      {choice.damage && (
        <span className={`flex severity-${choice.damage}`} title="damaged">
          <Icon name="health" size={14} />
          <span className="visually-hidden">damaged</span>
        </span>
      )}
      {choice.note && <span className="note">{choice.note}</span>}
    </>
  );
}

interface ListProps extends Props {
  readonly close: () => void;
}

function PickerList({ label, choices, value, onChoose, recent = [], close }: ListProps): ReactNode {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState('');
  const ordered = useMemo(() => withRecentFirst(choices, recent), [choices, recent]);
  const shown = useMemo(() => matchesIn(ordered, typed), [ordered, typed]);
  const jumps = useMemo(() => (typed === '' ? jumpsOf(shown) : []), [shown, typed]);
  const widest = useMemo(() => widestOf(choices), [choices]);
  const [active, setActive] = useState(() =>
    Math.max(
      0,
      ordered.findIndex((choice) => choice.key === value),
    ),
  );
  const at = Math.min(active, shown.length - 1);
  usePressOutside(box, close);
  useEffect(() => {
    window.addEventListener('blur', close);
    return () => window.removeEventListener('blur', close);
  }, [close]);
  const choose = (choice: Choice | undefined): void => {
    close();
    if (choice && choice.key !== value) onChoose(choice.key);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = movedIndex(event.key, at, shown.length, { isTyped: true });
    if (next !== null) setActive(next);
    else if (event.key === 'Enter') choose(shown[at]);
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="picker-popup popup" ref={box} style={{ width: `${widest}ch` }}>
      <input
        // biome-ignore lint/a11y/noAutofocus: the user has just opened this list
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={shown[at] ? `${id}-${at}` : undefined}
        aria-label={`Find a ${label.toLowerCase()}`}
        placeholder={
          choices.length > 99 ? `Type to find one of ${count(choices.length)}…` : 'Type to find…'
        }
        className={choices.length < TYPE_AHEAD_FROM ? 'visually-hidden' : 'picker-input'}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      {jumps.length > 0 && (
        <div className="picker-jumps">
          {jumps.map((jump) => (
            <button
              key={jump.at}
              type="button"
              tabIndex={-1}
              className="picker-jump tag"
              onClick={() => {
                setActive(jump.at);
                box.current?.querySelector('input')?.focus();
              }}
            >
              {jump.label}
            </button>
          ))}
        </div>
      )}
      <div
        role="listbox"
        id={id}
        aria-label={label}
        className="picker-list"
        style={{ height: Math.min(MOST_SEEN_PX, shown.length * ROW_PX) }}
        tabIndex={-1}
      >
        <Windowed
          count={shown.length}
          rowPx={ROW_PX}
          active={at}
          render={(index) => {
            const choice = shown[index] as Choice;
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the combobox above
              <div
                id={`${id}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={choice.key === value}
                aria-setsize={shown.length}
                aria-posinset={index + 1}
                className={index === at ? 'picker-option option active' : 'picker-option option'}
                title={choice.label}
                onClick={() => choose(choice)}
              >
                <OptionWords choice={choice} />
              </div>
            );
          }}
        />
      </div>
      {shown.length === 0 && <p className="muted option">No results.</p>}
    </div>
  );
}

/** A searchable select; plain text if there is one choice only. */
export function Picker(props: Props): ReactNode {
  const { label, choices, value } = props;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const selected = choices.find((choice) => choice.key === value);
  const close = useRef(() => {
    setOpen(false);
    button.current?.focus({ preventScroll: true });
  }).current;
  return (
    <div className="picker">
      <button
        type="button"
        ref={button}
        className="picker-button button"
        aria-haspopup="listbox"
        aria-expanded={isOpen}
        disabled={choices.length < 2}
        onClick={() => setOpen(true)}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        <span className="picker-label note">{label}</span>
        <StateDot state={selected?.state} />
        <span className="picker-value ellipsis strong" title={selected?.label}>
          {selected?.label ?? '–'}
        </span>
        {choices.length > 1 && <Icon name="down" size={14} />}
      </button>
      {isOpen && <PickerList {...props} close={close} />}
    </div>
  );
}
