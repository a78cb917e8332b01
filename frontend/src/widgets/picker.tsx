import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import type { Span } from '../api/types.gen';
import { Icon } from './icon';
import { STATE_WORDS } from './reading/words';
import './picker.css';

export interface Choice {
  readonly key: string;
  readonly label: string;
  readonly note?: string | undefined;
  readonly state?: Span['state'] | undefined;
  /** The worst that was found damaged in it. */
  readonly damage?: Span['damage'] | undefined;
}

interface Props {
  /** What is chosen: `Run`. */
  readonly label: string;
  readonly choices: readonly Choice[];
  readonly value: string;
  readonly onChoose: (key: string) => void;
}

const TYPE_AHEAD_FROM = 6;

function StateDot({ state }: { readonly state: Choice['state'] }): ReactNode {
  if (!state) return null;
  return (
    <span className={`dot dot-${state}`} title={STATE_WORDS[state]}>
      <span className="visually-hidden">{STATE_WORDS[state]}</span>
    </span>
  );
}

/** Closes what is open when the user presses elsewhere. */
function usePressOutside(inside: React.RefObject<HTMLElement | null>, close: () => void): void {
  useEffect(() => {
    const pressed = (event: PointerEvent): void => {
      if (!inside.current?.contains(event.target as Node)) close();
    };
    const left = (): void => close();
    document.addEventListener('pointerdown', pressed);
    window.addEventListener('blur', left);
    return () => {
      document.removeEventListener('pointerdown', pressed);
      window.removeEventListener('blur', left);
    };
  }, [inside, close]);
}

interface ListProps extends Props {
  readonly close: () => void;
}

function PickerList({ label, choices, value, onChoose, close }: ListProps): ReactNode {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState('');
  const shown = choices.filter((choice) =>
    choice.label.toLowerCase().includes(typed.toLowerCase()),
  );
  const [active, setActive] = useState(() =>
    Math.max(
      0,
      choices.findIndex((c) => c.key === value),
    ),
  );
  const at = Math.min(active, shown.length - 1);
  usePressOutside(box, close);
  useEffect(() => {
    box.current?.querySelector(`[data-at="${at}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  const choose = (choice: Choice | undefined): void => {
    close();
    if (choice && choice.key !== value) onChoose(choice.key);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) setActive(Math.max(0, Math.min(shown.length - 1, at + move)));
    else if (event.key === 'Enter') choose(shown[at]);
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="picker-popup" ref={box}>
      <input
        // biome-ignore lint/a11y/noAutofocus: the user has just opened this list
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={shown[at] ? `${id}-${at}` : undefined}
        aria-label={`Find a ${label.toLowerCase()}`}
        placeholder="Type to find…"
        className={choices.length < TYPE_AHEAD_FROM ? 'visually-hidden' : 'picker-input'}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div role="listbox" id={id} aria-label={label} className="picker-list" tabIndex={-1}>
        {shown.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the combobox above
          <div
            key={choice.key}
            id={`${id}-${index}`}
            data-at={index}
            role="option"
            tabIndex={-1}
            aria-selected={choice.key === value}
            className={index === at ? 'picker-option active' : 'picker-option'}
            onPointerMove={() => setActive(index)}
            onClick={() => choose(choice)}
          >
            <StateDot state={choice.state} />
            <span className="picker-option-label">{choice.label}</span>
            {choice.state && choice.state !== 'ready' && (
              <span className="picker-note" aria-hidden="true">
                {STATE_WORDS[choice.state]}
              </span>
            )}
            {choice.damage && (
              <span className={`picker-damage severity-${choice.damage}`} title="damaged">
                <Icon name={choice.damage} size={14} />
                <span className="visually-hidden">damaged</span>
              </span>
            )}
            {choice.note && <span className="picker-note">{choice.note}</span>}
          </div>
        ))}
        {shown.length === 0 && <p className="picker-none">Nothing is called that.</p>}
      </div>
    </div>
  );
}

/** A choice of one, found by typing; with nothing to choose from it is plain text. */
export function Picker(props: Props): ReactNode {
  const { label, choices, value } = props;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const chosen = choices.find((choice) => choice.key === value);
  const close = useRef(() => {
    setOpen(false);
    button.current?.focus({ preventScroll: true });
  }).current;
  return (
    <div className="picker">
      <button
        type="button"
        ref={button}
        className="picker-button"
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
        <span className="picker-label">{label}</span>
        <StateDot state={chosen?.state} />
        <span className="picker-value">{chosen?.label ?? '–'}</span>
        {choices.length > 1 && <Icon name="down" size={14} />}
      </button>
      {isOpen && <PickerList {...props} close={close} />}
    </div>
  );
}
