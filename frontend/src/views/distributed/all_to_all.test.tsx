import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { fakeApi, selectionOf } from '../../../tests/views';
import type { ExchangeGroup, AllToAll as Exchanges } from '../../api/types.gen';
import { AllToAll, imbalanceSentence } from './all_to_all';

const GROUP: ExchangeGroup = {
  group: 'ep',
  description: 'experts',
  ranks: [4, 6],
  call_count: 2,
  sent_bytes: [
    [1024, 3072],
    [1024, 1024],
  ],
  received_bytes: [2048, 4096],
  imbalance: 4 / 3,
  reason: '',
};
const PARTLY: ExchangeGroup = {
  ...GROUP,
  group: 'other',
  description: 'undefined',
  sent_bytes: [
    [5, 6],
    [null, null],
  ],
  received_bytes: [],
  imbalance: null,
  reason: 'There is no trace of rank 6.',
};
const EXCHANGES: Exchanges = { schema: 1, groups: [GROUP, PARTLY], waiting_count: 0 };

const cells = (): (string | null)[][] =>
  screen
    .getAllByRole('row')
    .map((row) => Array.from(row.querySelectorAll('td, th'), (cell) => cell.textContent));

describe('all-to-all exchanges', () => {
  const api = fakeApi({ 'distributed/all-to-all': EXCHANGES });

  it('name the rank that receives the most, or why that is unknown', () => {
    expect(imbalanceSentence(GROUP)).toBe(
      'Rank 6 receives the most, 4.00 KiB: 1.33 × the mean of 3.00 KiB.',
    );
    expect(imbalanceSentence(PARTLY)).toBe('Imbalance unknown: There is no trace of rank 6.');
    expect(imbalanceSentence({ ...GROUP, received_bytes: [5, 5], imbalance: 1 })).toBe(
      'Balanced: each rank receives 5 B.',
    );
  });

  it('are a map of senders and receivers', async () => {
    renderInPage(<AllToAll selection={selectionOf()} />, { view: 'distributed' });
    await screen.findByText(/Rank 6 receives the most/);
    expect(cells()).toEqual([
      ['Rank', '4', '6'],
      ['4', '1.00 KiB', '3.00 KiB'],
      ['6', '1.00 KiB', '1.00 KiB'],
      ['received', '2.00 KiB', '4.00 KiB'],
    ]);
    expect(screen.getByTitle('Rank 4 to rank 6: 3,072 bytes')).toBeTruthy();
    expect(screen.getByTitle('Rank 6 to itself: 1,024 bytes')).toBeTruthy();
  });

  it('leave out what no trace has', async () => {
    const { store } = renderInPage(<AllToAll selection={selectionOf()} />, { view: 'distributed' });
    await screen.findByText(/Rank 6 receives the most/);
    await userEvent.click(screen.getByRole('button', { name: /experts/ }));
    await userEvent.click(await screen.findByText(/group other/));
    expect(store.current().options.exchange).toBe('other 4,6');
    await screen.findByText(/There is no trace of rank 6/);
    expect(cells().slice(1)).toEqual([
      ['4', '5 B', '6 B'],
      ['6', '–', '–'],
    ]);
  });

  it('say so if no trace states the ranks', async () => {
    api.responses = { 'distributed/all-to-all': { ...EXCHANGES, groups: [] } };
    renderInPage(<AllToAll selection={selectionOf()} />, { view: 'distributed' });
    expect(await screen.findByText(/do not state the ranks/)).toBeTruthy();
  });
});
