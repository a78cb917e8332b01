/** Scales of kernels and operators by name: the list of them, and a search that adds one. */
import { type KeyboardEvent, type ReactNode, useId, useMemo, useRef, useState } from 'react';
import type { WhatIfNames } from '../../api/types.gen';
import { count, duration, plural } from '../../core/format';
import { movedIndex } from '../../core/list_keys';
import { shortName } from '../../core/names';
import { IconButton } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { usePressOutside } from '../../widgets/press_outside';
import type { Scale, Target } from './changes';
import { Factor } from './factor';
import { readable } from './glob';
import { type Suggestion, suggestionsFor } from './names';

const WORDS: Readonly<Record<Target, string>> = { kernels: 'kernel', operators: 'operator' };

interface ListProps {
  readonly scales: readonly Scale[];
  /** Number of events that each scale matches; empty if not known yet. */
  readonly matches: readonly number[];
  readonly onChange: (scales: readonly Scale[]) => void;
}

export function ScaleList({ scales, matches, onChange }: ListProps): ReactNode {
  if (scales.length === 0) return null;
  return (
    <ul className="whatif-scales" aria-label="Scales">
      {scales.map((scale, at) => {
        const { target, pattern, factor } = scale;
        const name = shortName(readable(pattern));
        const matched = matches[at];
        return (
          <li key={`${target} ${pattern}`} title={readable(pattern)}>
            <Factor
              label={name}
              value={factor}
              onChange={(next) => onChange(scales.with(at, { ...scale, factor: next }))}
            />
            <p className="note between">
              <span>
                {matched === undefined ? target : plural(matched, `${WORDS[target]} event`)}
              </span>
              <IconButton
                small
                icon="close"
                label={`Remove ${name}`}
                title="Remove this scale"
                onClick={() => onChange(scales.filter((other) => other !== scale))}
              />
            </p>
          </li>
        );
      })}
    </ul>
  );
}

const amountOf = ({ nameCount, eventCount, timeNs }: Suggestion): string => {
  const times = `${duration(timeNs)} in ${count(eventCount)}`;
  return nameCount === null ? times : `${plural(nameCount, 'name')}, ${times}`;
};

interface OptionProps {
  readonly id: string;
  readonly suggestion: Suggestion;
  readonly isActive: boolean;
  readonly onChoose: () => void;
}

function Option({ id, suggestion, isActive, onChoose }: OptionProps): ReactNode {
  const { target, label, title, nameCount } = suggestion;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the combobox
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      className={isActive ? 'option active' : 'option'}
      title={title}
      ref={(node) => {
        if (isActive) node?.scrollIntoView?.({ block: 'nearest' });
      }}
      onClick={onChoose}
    >
      <span className="tag">{nameCount === null ? WORDS[target] : target}</span>
      <span className="ellipsis grow">{nameCount === null ? label : `All of ${label}`}</span>
      <span className="note number">{amountOf(suggestion)}</span>
    </div>
  );
}

interface AddProps {
  readonly names: WhatIfNames;
  readonly onAdd: (target: Target, pattern: string) => void;
}

/** A search box with suggestions; Enter adds the highlighted one. */
export function AddScale({ names, onAdd }: AddProps): ReactNode {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const suggestions = useMemo(
    () => (isOpen ? suggestionsFor(names, typed) : []),
    [names, typed, isOpen],
  );
  const at = Math.min(active, suggestions.length - 1);
  usePressOutside(box, () => setOpen(false));
  const add = (suggestion: Suggestion | undefined): void => {
    if (!suggestion) return;
    onAdd(suggestion.target, suggestion.pattern);
    setTyped('');
    setOpen(false);
  };
  /** Whether the key did something. */
  const press = (key: string): boolean => {
    const next = movedIndex(key, at, suggestions.length, { isTyped: true });
    if (!isOpen) setOpen(key === 'ArrowDown');
    else if (next !== null) setActive(next);
    else if (key === 'Enter') add(suggestions[at]);
    else if (key === 'Escape' || key === 'Tab') setOpen(false);
    else return false;
    return key !== 'Tab' && (isOpen || key === 'ArrowDown');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || !press(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="whatif-add search" ref={box}>
      <Icon name="search" size={15} />
      <input
        type="search"
        data-search
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && at >= 0 ? `${id}-${at}` : undefined}
        aria-label="Add a scale: search operators and kernels"
        placeholder="Operator, kernel, or *gemm*"
        spellCheck={false}
        value={typed}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onChange={(event) => {
          setTyped(event.target.value);
          setActive(0);
          setOpen(true);
        }}
        onKeyDown={onKeyDown}
      />
      {isOpen && (
        <div className="whatif-suggestions popup">
          <div role="listbox" id={id} aria-label="Operators and kernels" tabIndex={-1}>
            {suggestions.map((suggestion, index) => (
              <Option
                key={`${suggestion.target} ${suggestion.pattern}`}
                id={`${id}-${index}`}
                suggestion={suggestion}
                isActive={index === at}
                onChoose={() => add(suggestion)}
              />
            ))}
          </div>
          {suggestions.length === 0 && <p className="muted option">No operator or kernel.</p>}
        </div>
      )}
    </div>
  );
}
