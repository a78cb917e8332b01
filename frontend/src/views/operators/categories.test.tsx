import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { fakeApi, renderView } from '../../../tests/views';
import fixture from './fixtures/operators-categories.json';
import Page from './page';

/** Clicks the first category, `convolution`, in the table: the bar above shows it too. */
async function clickFirst(): Promise<void> {
  const cells = await screen.findAllByText('convolution');
  await userEvent.click(cells.at(-1) as HTMLElement);
}

describe('the categories of operators', () => {
  const api = fakeApi({ operators: fixture });

  it('list the operators of a category when it is clicked', async () => {
    const { store } = renderView(Page, 'operators', { group: 'category' });
    await clickFirst();
    expect(api.requests[0]).toContain('group=category');
    expect(store.current()).toMatchObject({ group: 'name', search: 'category:"convolution"' });
  });

  it('show no operators of work that none launched', async () => {
    const values = {
      ...fixture.values,
      operator_count: fixture.values.operator_count.map(() => 0),
    };
    api.responses = { operators: { ...fixture, values } };
    const { store } = renderView(Page, 'operators', { group: 'category' });
    await clickFirst();
    expect(store.current()).toMatchObject({ group: 'category', search: '' });
    expect(await screen.findByText(/no operator that launched this work/)).toBeTruthy();
  });
});
