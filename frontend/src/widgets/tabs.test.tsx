import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import { renderInPage } from '../../tests/render';
import { Tabs } from './tabs';

const tabs = (
  <Tabs
    label="Memory"
    option="part"
    tabs={[
      { id: 'peak', label: 'At the peak' },
      { id: 'leaks', label: 'Leaks', count: 1200 },
      { id: 'events', label: 'Events' },
    ]}
  >
    {(tab) => <p>the {tab}</p>}
  </Tabs>
);

it('shows the first tab, and writes nothing of it into the URL', () => {
  const { store } = renderInPage(tabs);
  expect(screen.getByRole('tabpanel', { name: 'At the peak' }).textContent).toBe('the peak');
  expect(store.current().options).toEqual({});
});

it('shows what the URL says, and the first where that is nothing of its own', () => {
  renderInPage(tabs, { options: { part: 'leaks', unit: 'bytes' } });
  expect(screen.getByRole('tabpanel').textContent).toBe('the leaks');
  expect(screen.getByRole('tab', { selected: true }).textContent).toBe('Leaks1,200');
});

it('keeps the choice in the URL beside what else is there', async () => {
  const { store } = renderInPage(tabs, { options: { part: 'gone', unit: 'bytes' } });
  expect(screen.getByRole('tabpanel').textContent).toBe('the peak');
  await userEvent.click(screen.getByRole('tab', { name: 'Events' }));
  expect(store.current().options).toEqual({ part: 'events', unit: 'bytes' });
  await userEvent.click(screen.getByRole('tab', { name: 'At the peak' }));
  expect(store.current().options).toEqual({ unit: 'bytes' });
});

it('is one stop of Tab; arrows, Home and End go round', async () => {
  renderInPage(tabs);
  await userEvent.tab();
  const shown = (): string | null => document.activeElement?.textContent ?? null;
  expect(shown()).toBe('At the peak');
  await userEvent.keyboard('{ArrowLeft}');
  expect(shown()).toBe('Events');
  expect(screen.getByRole('tabpanel').textContent).toBe('the events');
  await userEvent.keyboard('{ArrowRight}{ArrowRight}');
  expect(shown()).toBe('Leaks1,200');
  await userEvent.keyboard('{End}{Home}');
  expect(shown()).toBe('At the peak');
  await userEvent.tab();
  expect(document.activeElement).toBe(document.body);
});
