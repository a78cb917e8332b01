/** Which columns a table shows: its own choice, changed by the user's, which the browser keeps. */
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

export function shownColumns(columns: readonly Column[], chosen: Shown): Record<string, boolean> {
  return Object.fromEntries(
    columns.map((column, at) => [column.key, at === 0 || (chosen[column.key] ?? !column.hidden)]),
  );
}

export interface ColumnsShown {
  readonly shown: Record<string, boolean>;
  readonly show: (key: string, isOn: boolean) => void;
  readonly reset: () => void;
}

export function useColumnsShown(name: string, columns: readonly Column[]): ColumnsShown {
  const [chosen, setChosen] = useState(() => stored(name));
  const keep = useCallback(
    (next: Shown) => {
      setChosen(next);
      try {
        window.localStorage.setItem(keyOf(name), JSON.stringify(next));
      } catch {
        // Storage may be full or forbidden: the choice then lasts as long as the page.
      }
    },
    [name],
  );
  return {
    shown: shownColumns(columns, chosen),
    show: (key, isOn) => keep({ ...chosen, [key]: isOn }),
    reset: () => keep({}),
  };
}
