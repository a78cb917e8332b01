/** The visible columns of a table: defaults, changed by the user's settings in local storage. */
import { useCallback, useState } from 'react';
import type { Column } from '../../api/types.gen';

type Shown = Readonly<Record<string, boolean>>;

const keyOf = (name: string): string => `stepscope.columns.${name}`;

function isShown(value: unknown): value is Shown {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((entry) => typeof entry === 'boolean')
  );
}

function stored(name: string): Shown {
  try {
    const value: unknown = JSON.parse(window.localStorage.getItem(keyOf(name)) ?? '{}');
    return isShown(value) ? value : {};
  } catch {
    return {};
  }
}

export function shownColumns(columns: readonly Column[], settings: Shown): Record<string, boolean> {
  return Object.fromEntries(
    columns.map((column, at) => [column.key, at === 0 || (settings[column.key] ?? !column.hidden)]),
  );
}

export interface ColumnsShown {
  readonly shown: Record<string, boolean>;
  readonly show: (key: string, isOn: boolean) => void;
  readonly reset: () => void;
}

export function useColumnsShown(name: string, columns: readonly Column[]): ColumnsShown {
  const [settings, setSettings] = useState(() => stored(name));
  const keep = useCallback(
    (next: Shown) => {
      setSettings(next);
      try {
        window.localStorage.setItem(keyOf(name), JSON.stringify(next));
      } catch {
        // Storage may be full or forbidden: the setting then lasts until the page is closed.
      }
    },
    [name],
  );
  return {
    shown: shownColumns(columns, settings),
    show: (key, isOn) => keep({ ...settings, [key]: isOn }),
    reset: () => keep({}),
  };
}
