import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import { count as asCount } from '../core/format';
import { useOption } from '../state/option';
import './tabs.css';

export interface Tab<T extends string> {
  /** The value in the URL. */
  readonly id: T;
  readonly label: string;
  readonly count?: number | undefined;
  readonly title?: string | undefined;
}

interface Props<T extends string> {
  /** The accessible name. */
  readonly label: string;
  /** The first is the default. */
  readonly tabs: readonly [Tab<T>, ...Tab<T>[]];
  /** The name of the URL option. */
  readonly option?: string;
  /** Shown at the end of the row. */
  readonly actions?: ReactNode;
  readonly children: (tab: T) => ReactNode;
}

function target(key: string, at: number, length: number): number | null {
  if (key === 'Home') return 0;
  if (key === 'End') return length - 1;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  return step === undefined ? null : (at + step + length) % length;
}

/** Tabs; the URL holds the selected one. */
export function Tabs<T extends string>(props: Props<T>): ReactNode {
  const { label, tabs, option = 'tab', actions, children } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const ids = tabs.map((tab) => tab.id);
  const [selected, choose] = useOption(option, tabs[0].id, ids);
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = target(event.key, ids.indexOf(selected), tabs.length);
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
              aria-selected={tab.id === selected}
              aria-controls={`${id}-panel`}
              tabIndex={tab.id === selected ? 0 : -1}
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
        aria-labelledby={`${id}-${selected}`}
      >
        {children(selected)}
      </div>
    </div>
  );
}
