import { act, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { expect, it } from 'vitest';
import { renderInPage } from '../../tests/render';
import { listed, noRuns, runOf } from '../../tests/states';
import type { Runs } from '../api/types.gen';
import { NewRuns } from './new_runs';

const runs = (...names: string[]): Runs => listed(...names.map((name) => runOf(name, 'ready', [])));

function show(first: Runs) {
  let change = (_: Runs, _shown: string | null): void => undefined;
  function Changing() {
    const [[now, shown], set] = useState<[Runs, string | null]>([first, null]);
    change = (...next) => set(next);
    return <NewRuns runs={now} shown={shown} />;
  }
  const { store } = renderInPage(<Changing />);
  const next = (now: Runs, shown: string | null = null): void => act(() => change(now, shown));
  return { store, next };
}

const notice = (): string | undefined =>
  screen.queryByRole('complementary', { name: 'New runs' })?.textContent ?? undefined;

it('says nothing of the runs that are listed when the page opens', () => {
  const { next } = show({ ...noRuns, scanning: true });
  next({ ...runs('a'), scanning: true });
  next(runs('a', 'b'));
  expect(notice()).toBeUndefined();
});

it('names a new run, and opens its advice', async () => {
  const { store, next } = show(runs('a'));
  next(runs('a', 'b'));
  expect(notice()).toBe('1 new run: bOpen');
  await userEvent.click(screen.getByRole('button', { name: 'Open' }));
  expect(store.current()).toMatchObject({ view: 'advice', run: 'b' });
  expect(notice()).toBeUndefined();
});

it('opens several new runs in their list, the latest first', async () => {
  const { store, next } = show(runs('a'));
  next(runs('a', 'b', 'c'));
  expect(notice()).toBe('2 new runs: b, cOpen');
  await userEvent.click(screen.getByRole('button', { name: 'Open' }));
  expect(store.current()).toMatchObject({
    view: 'runs',
    sort: { key: 'recorded', descending: true },
  });
});

it('ends when the run is shown, or when the notice is closed', async () => {
  const { next } = show(runs('a'));
  next(runs('a', 'b'));
  next(runs('a', 'b'), 'b');
  next(runs('a', 'b'));
  expect(notice()).toBeUndefined();
  next(runs('a', 'b', 'c'));
  await userEvent.click(screen.getByRole('button', { name: 'Close the notice' }));
  expect(notice()).toBeUndefined();
});
