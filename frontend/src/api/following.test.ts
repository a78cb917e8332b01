import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import { createElement, type ReactNode, useState } from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { queuedSpan, spanOf } from '../../tests/states';
import { type Basis, basisOf, useFollowed, waitMs } from './following';
import type { Span } from './types.gen';

const files = (ready: number, waiting: number): Span[] => [
  ...Array.from({ length: ready }, (_, at) => spanOf({ trace: `r${at}` })),
  ...Array.from({ length: waiting }, (_, at) => queuedSpan(at + 1, { trace: `q${at}` })),
];

describe('what an answer on a run rests on', () => {
  it('changes with every file that comes in, is written anew or is given up', () => {
    const bases = [
      files(1, 2),
      files(2, 1),
      [...files(2, 0), spanOf({ state: 'unreadable' })],
      files(3, 0),
      [...files(2, 0), spanOf({ file_bytes: 5 })],
      [...files(2, 0), spanOf({ events: 5 })],
    ].map(basisOf);
    expect(new Set(bases.map(({ revision }) => revision)).size).toBe(bases.length);
    expect(bases.map(({ isGrowing }) => isGrowing)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  it('does not change with how far a file that is read has come', () => {
    expect(basisOf(files(1, 1))).toEqual(basisOf([spanOf(), queuedSpan(7)]));
  });
});

describe('an answer is asked for anew', () => {
  const reading: Basis = { revision: 'b', isGrowing: true };
  const read: Basis = { revision: 'b', isGrowing: false };
  const last = { revision: 'a', tookMs: 10, endedAtMs: 10_000, hasFailed: false };

  it('not where all is there and nothing has come in since', () => {
    expect(waitMs({ ...last, revision: 'b' }, read, 99_000)).toBe(false);
  });

  it('now and then while one file takes long, for the server may have answered with less than it knew', () => {
    expect(waitMs({ ...last, revision: 'b' }, reading, 10_000)).toBe(12_000);
    expect(waitMs({ ...last, revision: 'b', tookMs: 4000 }, reading, 10_000)).toBe(20_000);
  });

  it('at most once a second while files come in, and less often the longer it takes', () => {
    expect(waitMs(last, reading, 10_200)).toBe(800);
    expect(waitMs({ ...last, tookMs: 2000 }, reading, 12_000)).toBe(8000);
    expect(waitMs(last, reading, 60_000)).toBe(50);
  });

  it('at once when the last file is there, unless the server has just failed', () => {
    expect(waitMs({ ...last, tookMs: 2000 }, read, 10_000)).toBe(50);
    expect(waitMs({ ...last, hasFailed: true }, read, 10_000)).toBe(1000);
  });
});

describe('a followed answer', () => {
  const wrapper = ({ children }: { readonly children: ReactNode }): ReactNode => {
    const [client] = useState(
      () => new QueryClient({ defaultOptions: { queries: { retry: false } } }),
    );
    return createElement(QueryClientProvider, { client }, children);
  };
  const asked = (basis: Basis, ask: () => Promise<string>) => ({
    queryKey: ['advice'],
    ask,
    basis,
    isAlike: () => false,
  });

  afterEach(() => vi.useRealTimers());

  it('is asked for again after the first request failed, once files have come in, not before', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const ask = vi
      .fn(async (): Promise<string> => 'the advice')
      .mockRejectedValueOnce(new Error('busy'));
    const first: Basis = { revision: 'a', isGrowing: true };
    const { result, rerender } = renderHook(({ basis }) => useFollowed(asked(basis, ask)), {
      wrapper,
      initialProps: { basis: first },
    });
    await waitFor(() => expect(result.current.isError).toBe(true));
    await vi.advanceTimersByTimeAsync(5000);
    expect(ask).toHaveBeenCalledTimes(1);
    rerender({ basis: { revision: 'b', isGrowing: false } });
    await waitFor(() => expect(result.current.data).toBe('the advice'));
    expect(ask).toHaveBeenCalledTimes(2);
  });
});
