import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import { type Rendered, renderInPage } from '../../../tests/render';
import { selectionOf } from '../../../tests/views';
import { RankButtons } from './ranks';

function shown(run: string, worker: string): Rendered {
  const names = { run, worker, span: null };
  return renderInPage(<RankButtons selection={selectionOf(names)} />, {
    view: 'timeline',
    ...names,
    search: 'gemm',
    step: 3,
    event: 12,
    options: { at: '1000-2000', tracks: 'stream' },
  });
}

const button = (name: string): HTMLButtonElement => screen.getByRole('button', { name });

it('the next rank is shown at the same step, without settings of the first trace', async () => {
  const { store } = shown('damaged', 'rank0');
  expect(button('Previous rank').disabled).toBe(true);
  await userEvent.click(button('Next rank'));
  const { worker, step, event, search, options } = store.current();
  expect([worker, step, event, search]).toEqual(['rank1', 3, null, 'gemm']);
  expect(options).toEqual({ tracks: 'stream' });
});

it('the last rank links only to the previous one', async () => {
  const { store } = shown('damaged', 'rank1');
  expect(button('Next rank').disabled).toBe(true);
  await userEvent.click(button('Previous rank'));
  expect(store.current().worker).toBe('rank0');
});

it('a run of one worker has no links to other ranks', () => {
  shown('compiled/eager', 'trainer');
  expect(screen.queryByRole('button')).toBeNull();
});
