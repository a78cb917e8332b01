import { expect, it } from 'vitest';
import { recordedAt } from './recorded';

it('orders names by time, whichever unit the profiler wrote', () => {
  const files = [
    'a.1700000002000000000.pt.trace.json.gz',
    'b.1700000001000.pt.trace.json',
    'c.1700000003000000.pt.trace.json.gz',
  ];
  const byTime = files.sort((a, b) => (recordedAt(a) < recordedAt(b) ? -1 : 1));
  expect(byTime.map((file) => file[0])).toEqual(['b', 'a', 'c']);
});

it('takes no count, rank or other number for a time', () => {
  for (const file of ['worker0.1.pt.trace.json', 'rank12.pt.trace.json', '1700000001000.json']) {
    expect(recordedAt(file)).toBe('');
  }
});
