import { act, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Skeleton } from './loaded';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function after(milliseconds: number): HTMLElement {
  act(() => void vi.advanceTimersByTime(milliseconds));
  return screen.getByRole('status', { name: 'Loading' });
}

it('shows nothing at first, then shapes, and says why where it takes long', () => {
  render(<Skeleton rows={2} />);
  expect(after(100).children).toHaveLength(0);
  expect(after(100).children).toHaveLength(2);
  expect(after(2000).textContent).toBe('');
  expect(after(500).textContent).toMatch('The first request for a large trace takes some seconds');
});
