import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import {
  cancelledRun,
  cancelledSpan,
  noRuns,
  queuedSpan,
  readingRun,
  readingSpan,
  runOf,
  spanOf,
} from '../../../tests/states';
import type { Progress, Span } from '../../api/types.gen';
import { Reading } from '.';
import { fileWords, wholeWords } from './words';

const inPhase = (patch: Partial<Progress>): Span => {
  const span = readingSpan();
  return { ...span, progress: span.progress && { ...span.progress, ...patch } };
};

describe('how things stand with a file', () => {
  it.each<[Span, string]>([
    [readingSpan(), 'reading, 118 MiB of 492 MiB, 2,345,678 events, about 10 s left'],
    [inPhase({ left_ns: null, events: 0 }), 'reading, 118 MiB of 492 MiB'],
    [inPhase({ phase: 'waiting' }), 'waiting for memory, about 10 s left'],
    [inPhase({ phase: 'analysing', left_ns: null }), 'analysing, 2,345,678 events'],
    [readingSpan({ progress: null }), 'starting, 492 MiB'],
    [queuedSpan(1), 'next, 492 MiB'],
    [queuedSpan(12), 'number 12 in the queue, 492 MiB'],
    [cancelledSpan(), 'cancelled, 492 MiB'],
    [
      queuedSpan(1, { is_growing: true }),
      'still being written: it is read when it stops growing, 492 MiB',
    ],
  ])('is told in words %#', (span, words) => {
    expect(fileWords(span).join(', ')).toBe(words);
  });

  it('is told with its pace, where that is known', () => {
    const some = { totalCount: 8, doneCount: 2, cancelledCount: 0, leftNs: 61e9 };
    const progress = { ...some, bytesDone: 1e6, bytesTotal: 4e6 };
    expect(wholeWords(progress, { bytesPerSecond: 2e5, leftNs: 15e9 })).toEqual([
      '2 of 8 files done',
      '977 KiB of 3.81 MiB',
      '200 kB/s',
      'about 15 s left',
    ]);
  });

  it('is told of all together, without what is not known', () => {
    const none = { totalCount: 1, doneCount: 0, cancelledCount: 0 };
    expect(wholeWords({ ...none, bytesDone: 0, bytesTotal: 0, leftNs: null })).toEqual([]);
    const some = { totalCount: 8, doneCount: 2, cancelledCount: 1 };
    expect(wholeWords({ ...some, bytesDone: 1e6, bytesTotal: 4e6, leftNs: 61e9 })).toEqual([
      '2 of 8 files done',
      '977 KiB of 3.81 MiB',
      'about 2 min left',
    ]);
  });
});

/** What was posted, and what the server answers to it. */
let posted: string[];
let answer: () => Response;

beforeEach(() => {
  posted = [];
  answer = () => new Response(JSON.stringify(noRuns));
  vi.stubGlobal('fetch', async (url: URL, options: RequestInit) => {
    posted.push(`${options.method} ${url.pathname.split('/api/')[1]}`);
    return answer();
  });
});
afterEach(() => vi.unstubAllGlobals());

const rowOf = (worker: string): HTMLElement =>
  screen.getByText(worker).closest('li') as unknown as HTMLElement;

describe('the files of a run', () => {
  it('show a bar where bytes are counted, and one without a value where they are not', () => {
    const analysing = { ...inPhase({ phase: 'analysing' }), trace: 't2' };
    renderInPage(<Reading run={runOf('run', 'reading', [readingSpan(), analysing])} trace="t1" />);
    const [whole, counted, other] = screen.getAllByRole('progressbar') as HTMLProgressElement[];
    expect(whole?.position).toBeCloseTo((123_456_789 + 123_456_789) / 1_032_000_000);
    expect([counted?.value, counted?.max]).toEqual([123_456_789, 516_000_000]);
    expect(other?.hasAttribute('value')).toBe(false);
  });

  it('are cancelled one by one, or all', async () => {
    renderInPage(<Reading run={readingRun} trace="reading-0" />);
    const row = rowOf('rank2');
    expect(within(row).getByText('next')).toBeTruthy();
    await userEvent.click(within(row).getByRole('button', { name: /^Cancel rank2\.17/ }));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all 4 of llama_fsdp' }));
    expect(posted).toEqual(['POST traces/reading-2/cancel', 'POST runs/llama_fsdp/cancel']);
  });

  it('are asked for again, one by one, or all that were cancelled', async () => {
    renderInPage(<Reading run={cancelledRun} trace="stopped-0" />);
    expect(screen.getByRole('heading', { name: 'Reading stopped was cancelled' })).toBeTruthy();
    expect(screen.queryByRole('progressbar')).toBeNull();
    await userEvent.click(screen.getAllByRole('button', { name: /^Read again/ })[1] as HTMLElement);
    await userEvent.click(screen.getByRole('button', { name: /^Read all 2 again/ }));
    expect(posted).toEqual(['POST traces/stopped-1/read', 'POST runs/stopped/read']);
  });

  it('say which of them can be looked at already', async () => {
    const run = runOf('run', 'reading', [
      spanOf(),
      readingSpan({ trace: 't2' }),
      cancelledSpan({ trace: 't3' }),
    ]);
    const { store } = renderInPage(<Reading run={run} trace="t2" />);
    expect(screen.getByText(/1 file of this run is ready/)).toBeTruthy();
    await userEvent.click(screen.getByRole('link', { name: 'show rank0, span 1' }));
    expect(store.current()).toMatchObject({ worker: 'rank0', span: '1' });
    expect(screen.getAllByRole('listitem')).toHaveLength(2);
    expect(rowOf('rank1').getAttribute('aria-current')).toBe('true');
  });

  it('are not all listed where they are thousands: what matters is', () => {
    const spans = Array.from({ length: 130 }, (_, at) => queuedSpan(at + 1, { trace: `q${at}` }));
    const read = [...spans.slice(0, 128), readingSpan({ trace: 'r' }), ...spans.slice(129)];
    renderInPage(<Reading run={runOf('run', 'reading', read)} trace="q129" />);
    const rows = screen.getAllByRole('listitem').map((row) => row.querySelector('strong'));
    expect(rows.map((name) => name?.textContent)).toEqual(['rank129', 'rank128']);
    expect(screen.getByText('and 128 other files')).toBeTruthy();
  });

  it('that somebody looks at are asked for, once, unless they were cancelled', async () => {
    const run = runOf('run', 'queued', [queuedSpan(1), queuedSpan(2, { trace: 't2' })]);
    renderInPage(<Reading run={cancelledRun} trace="stopped-0" />);
    renderInPage(<Reading run={run} trace="t2" />);
    await waitFor(() => expect(posted).toEqual(['POST traces/t2/read']));
  });
});

it('says why something could not be cancelled, and may be tried again', async () => {
  answer = () =>
    new Response(JSON.stringify({ code: 'not-found', message: 'No such trace.', hint: 'Gone?' }), {
      status: 404,
    });
  renderInPage(<Reading run={runOf('run', 'reading', [readingSpan()])} trace="t1" />);
  const button = screen.getByRole('button', { name: /^Cancel/ });
  await userEvent.click(button);
  expect((await screen.findByRole('alert')).textContent).toBe(
    'Reading could not be cancelled: No such trace. Gone?',
  );
  answer = () => new Response(JSON.stringify(noRuns));
  await userEvent.click(button);
  await waitFor(() => expect(screen.queryByRole('alert')).toBeNull());
});
