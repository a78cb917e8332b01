import { describe, expect, it } from 'vitest';
import { adjacentHit, type FetchPage, type HitStart, PAGE_HITS, type Page } from './hits';
import { partWith } from './search';
import { searchedFrom } from './timeline';
import type { Hit } from './wire';

const STEP_NS = 10;

const hitAt = (number: number): Hit => ({
  event: 7000 + number,
  name: 'gemm',
  category: 'kernel',
  track: 2,
  row: 0,
  start_ns: number * STEP_NS,
  duration_ns: 5,
});

/** A recording with so many hits, 10 ns apart, and what it was asked. */
function search(total: number): { readonly fetchPage: FetchPage; readonly parts: object[] } {
  const parts: object[] = [];
  const fetchPage: FetchPage = (part) => {
    parts.push(part);
    const isPage = 'offset' in part;
    const first = isPage ? part.offset : Math.min(total, Math.ceil(part.start_ns / STEP_NS));
    const length = isPage ? Math.min(PAGE_HITS, total - first) : 0;
    const hits = Array.from({ length }, (_, at) => hitAt(first + at));
    return Promise.resolve({ total, first, hits });
  };
  return { fetchPage, parts };
}

const NOWHERE: HitStart = { number: null, event: null, fromNs: 0 };

async function numberFrom(total: number, start: Partial<HitStart>, by: -1 | 1): Promise<number> {
  const match = await adjacentHit(search(total).fetchPage, { ...NOWHERE, ...start }, by);
  expect(match?.hit).toEqual(hitAt(match?.number ?? -1));
  return match?.number ?? -1;
}

describe('the next hit', () => {
  it('is found beyond the first thousand, in both directions', async () => {
    expect(await numberFrom(812_334, { number: 999 }, 1)).toBe(1000);
    expect(await numberFrom(812_334, { number: 1000 }, -1)).toBe(999);
    expect(await numberFrom(812_334, { number: 640_000 }, 1)).toBe(640_001);
  });

  it('wraps around at both ends', async () => {
    expect(await numberFrom(2500, { number: 2499 }, 1)).toBe(0);
    expect(await numberFrom(2500, { number: 0 }, -1)).toBe(2499);
  });

  it('starts at the left edge', async () => {
    expect(await numberFrom(5000, { fromNs: 30_001 }, 1)).toBe(3001);
    expect(await numberFrom(5000, { fromNs: 30_001 }, -1)).toBe(3000);
  });

  it('wraps around after the last hit', async () => {
    expect(await numberFrom(3000, { fromNs: 10 ** 9 }, 1)).toBe(0);
    expect(await numberFrom(3000, { fromNs: 10 ** 9 }, -1)).toBe(2999);
  });

  it('continues from a selected hit, and ignores a selected slice that is none', async () => {
    expect(await numberFrom(5000, { event: 7000 + 3200, fromNs: 32_000 }, 1)).toBe(3201);
    expect(await numberFrom(5000, { event: 7000 + 3200, fromNs: 32_000 }, -1)).toBe(3199);
    expect(await numberFrom(5000, { event: 4, fromNs: 32_000 }, 1)).toBe(3200);
  });

  it('is null without hits', async () => {
    const { fetchPage, parts } = search(0);
    expect(await adjacentHit(fetchPage, NOWHERE, 1)).toBeNull();
    expect(parts).toEqual([{ offset: 0 }]);
  });

  it('uses pages aligned to thousands, each requested once', async () => {
    const { fetchPage, parts } = search(5000);
    await adjacentHit(fetchPage, { ...NOWHERE, number: 3210 }, 1);
    expect(parts).toEqual([{ offset: 0 }, { offset: 3000 }]);
  });
});

describe('a search', () => {
  const view = { start: 100, end: 200 };

  it('starts at the left edge of the visible range', () => {
    expect(searchedFrom(view, undefined)).toBe(100);
    expect(searchedFrom(view, { track: 0, row: 0, start_ns: 10, duration_ns: 5 })).toBe(100);
  });

  it('continues from a visible selected slice', () => {
    expect(searchedFrom(view, { track: 0, row: 0, start_ns: 150, duration_ns: 5 })).toBe(150);
  });
});

it('the list shows the page of the selected hit', async () => {
  const page: Page = await search(5000).fetchPage({ offset: 3000 });
  const part = partWith(page, 3260);
  expect([part.first, part.hits.length]).toEqual([3250, 250]);
  expect(part.hits[10]).toEqual(hitAt(3260));
});
