import { act, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { clearToasts, Toasts, toast } from './toast';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  act(clearToasts);
  vi.useRealTimers();
});

it('says what was done, takes it back once, and goes', () => {
  const undo = vi.fn();
  render(<Toasts />);
  act(() => toast('The finding is hidden', { undo }));
  expect(screen.getByRole('status').textContent).toContain('The finding is hidden');
  fireEvent.click(screen.getByRole('button', { name: 'Undo' }));
  expect(undo).toHaveBeenCalledTimes(1);
  expect(screen.getByRole('status').textContent).toBe('');
});

it('goes by itself, but not while it is being read', () => {
  render(<Toasts />);
  act(() => toast('Copied'));
  const shown = screen.getByText('Copied').parentElement as HTMLElement;
  fireEvent.pointerEnter(shown);
  act(() => vi.advanceTimersByTime(60_000));
  expect(screen.getByText('Copied')).toBeTruthy();
  fireEvent.pointerLeave(shown);
  act(() => vi.advanceTimersByTime(60_000));
  expect(screen.queryByText('Copied')).toBeNull();
});

it('shows the latest three', () => {
  render(<Toasts />);
  act(() => {
    for (const words of ['a', 'b', 'c', 'd']) toast(words);
  });
  expect(screen.getAllByRole('button').map((each) => each.getAttribute('aria-label'))).toEqual([
    'Dismiss: b',
    'Dismiss: c',
    'Dismiss: d',
  ]);
});
