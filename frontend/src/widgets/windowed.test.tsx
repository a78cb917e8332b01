import { render, screen } from '@testing-library/react';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Windowed, windowOf } from './windowed';

it('draws every row that any part of is in sight', () => {
  const natural = fc.nat({ max: 5000 });
  fc.assert(
    fc.property(
      natural,
      natural,
      natural,
      fc.integer({ min: 1, max: 60 }),
      (top, height, count, rowPx) => {
        const [first, end] = windowOf(top, height, { count, rowPx });
        for (let at = 0; at < count; at += 1) {
          const isSeen = (at + 1) * rowPx > top && at * rowPx < top + height;
          if (isSeen) expect(at >= first && at < end).toBe(true);
        }
        expect(first).toBeGreaterThanOrEqual(0);
        expect(end).toBeLessThanOrEqual(count);
      },
    ),
  );
});

it('holds few of many rows in the document, the active one among them', () => {
  render(<Windowed count={1024} rowPx={30} active={900} render={(at) => <p>row {at}</p>} />);
  expect(screen.getByText('row 900')).toBeTruthy();
  expect(screen.getAllByText(/^row/).length).toBeLessThan(60);
});
