import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import { count as asCount } from '../core/format';
import { useOption } from '../state/option';
import './tabs.css';

export interface Tab<T extends string> {
  /** The word in the URL. */
  readonly id: T;
  readonly label: string;
  /** How many are behind it. */
  readonly count?: number | undefined;
  readonly title?: string | undefined;
}

interface Props<T extends string> {
  /** What the tabs are of, for screen readers. */
  readonly label: string;
  /** The first is the usual one. */
  readonly tabs: readonly [Tab<T>, ...Tab<T>[]];
  /** The name in the URL's options. */
  readonly option?: string;
  /** What stands at the end of the row. */
  readonly actions?: ReactNode;
  readonly children: (tab: T) => ReactNode;
}

/** Where a key leads from one of `length` tabs; null: it is no key of theirs. */
function target(key: string, at: number, length: number): number | null {
  if (key === 'Home') return 0;
  if (key === 'End') return length - 1;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  return step === undefined ? null : (at + step + length) % length;
}

/** Parts of a view, one at a time; which one stands in the URL. */
export function Tabs<T extends string>(props: Props<T>): ReactNode {
  const { label, tabs, option = 'tab', actions, children } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const known = tabs.map((tab) => tab.id);
  const [chosen, choose] = useOption(option, tabs[0].id, known);
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = target(event.key, known.indexOf(chosen), tabs.length);
    const tab = next === null ? undefined : tabs[next];
    if (!tab) return;
    event.preventDefault();
    event.stopPropagation();
    choose(tab.id);
    list.current?.querySelectorAll<HTMLElement>('[role="tab"]')[next ?? 0]?.focus();
  };
  return (
    <div className="tabs column">
      <div className="tabs-row wrap">
        <div
          className="tabs-list"
          role="tablist"
          aria-label={label}
          ref={list}
          onKeyDown={onKeyDown}
        >
          {tabs.map((tab) => (
            <button
              key={tab.id}
              type="button"
              role="tab"
              id={`${id}-${tab.id}`}
              aria-selected={tab.id === chosen}
              aria-controls={`${id}-panel`}
              tabIndex={tab.id === chosen ? 0 : -1}
              className="tab inline muted"
              title={tab.title}
              onClick={() => choose(tab.id)}
            >
              {tab.label}
              {tab.count !== undefined && <span className="tag">{asCount(tab.count)}</span>}
            </button>
          ))}
        </div>
        {actions}
      </div>
      <div
        className="tabs-panel grow"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${chosen}`}
      >
        {children(chosen)}
      </div>
    </div>
  );
}
