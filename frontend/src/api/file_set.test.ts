import { expect, it } from 'vitest';
import { cancelledSpan, queuedSpan, readingSpan, spanOf } from '../../tests/states';
import { fileSet } from './queries';

it('does not change while files are read, and does when one comes, changes or is given up', () => {
  const size = { file_bytes: 516_000_000 };
  const queued = fileSet([queuedSpan(1), queuedSpan(2)]);
  expect(fileSet([readingSpan(), queuedSpan(1)])).toBe(queued);
  expect(fileSet([spanOf(size), spanOf(size)])).toBe(queued);
  const others = [
    [spanOf(size), spanOf(size), spanOf(size)],
    [spanOf(size), spanOf({ file_bytes: 516_000_001 })],
    [spanOf(size), cancelledSpan()],
    [spanOf(size), spanOf({ ...size, state: 'unreadable' })],
  ];
  for (const spans of others) expect(fileSet(spans)).not.toBe(queued);
});
