import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { firstOf, listed, runOfWorker, spanOf } from '../../../tests/states';
import { api } from '../../api/client';
import type { RunState, Runs, TrendPoint, Trends } from '../../api/types.gen';
import { largestOf, roundStep, type Series, stretches } from '../../charts/small_multiple';
import { duration } from '../../core/format';
import spansFixture from './fixture.json';
import allFixture from './fixtures/trends.json';
import { TrendsPage } from './page';
import { panelsOf, readingsAt, tableOf, verdictOf } from './panels';
import { defaultScope, hasTimes, labelOf, nameOf, positionsOf, scopeSizes } from './points';

const all = allFixture as unknown as Trends;
const spans = spansFixture as unknown as Trends;

/** The runs that the answer is of, one worker each. */
function runsOf(trends: Trends): Runs {
  const ids = [...new Set(trends.points.map(({ run }) => run))];
  const runs = ids.map((id, at): RunState => {
    const own = trends.points.filter(({ run }) => run === id);
    const of = own.map((point) =>
      spanOf({
        trace: point.traces[0] ?? '',
        label: String(point.span),
        file: `w.17000000${String(at).padStart(2, '0')}000000000.pt.trace.json`,
      }),
    );
    return { ...runOfWorker(own[0]?.run_name ?? '', of), id };
  });
  return listed(...runs);
}

describe('the scope', () => {
  it('defaults to the narrowest with at least two points', () => {
    const runs = runsOf(spans);
    const [run] = runs.runs;
    if (!run) throw new Error('the fixture has a run');
    expect(defaultScope(scopeSizes(runs, run))).toBe('spans');
    expect(defaultScope({ spans: 1, folder: 2, all: 9 })).toBe('folder');
    expect(defaultScope({ spans: 1, folder: 1, all: 9 })).toBe('all');
  });

  it('determines the labels of points', () => {
    const [point] = spans.points;
    if (!point) throw new Error('the fixture has points');
    expect(nameOf(point, 'spans', spans.points)).toBe('span 1');
    expect(nameOf(point, 'all', spans.points)).toBe('language_model/long_job, span 1');
    expect(nameOf(point, 'all', [point])).toBe('language_model/long_job');
    expect(labelOf(point, 'folder')).toBe('long_job');
    expect(labelOf(point, 'all').length).toBeLessThan(16);
  });
});

describe('positions on the axis', () => {
  it('are even, or by time if all files have one', () => {
    const runs = runsOf(all);
    const even = positionsOf(all.points, runs, 'order');
    const half = 0.5 / all.points.length;
    expect(even[0]).toBeCloseTo(half);
    expect(even.at(-1)).toBeCloseTo(1 - half);
    expect(hasTimes(all.points, runs)).toBe(true);
    const timed = positionsOf(all.points, runs, 'time');
    expect([timed[0], timed.at(-1)]).toEqual([0, 1]);
    expect(timed.every((x, at) => at === 0 || x >= (timed[at - 1] ?? 0))).toBe(true);
  });

  it('are even if a file has no time', () => {
    expect(hasTimes(all.points, { ...runsOf(all), runs: [] })).toBe(false);
  });
});

describe('the charts', () => {
  it('draw all categories of the step, which sum to it', () => {
    const parts = panelsOf(all).find(({ id }) => id === 'parts');
    all.points.forEach((point, at) => {
      const sum = parts?.series.reduce(
        (total, series) => total + (series.kind === 'column' ? (series.values[at] ?? 0) : 0),
        0,
      );
      expect(sum).toBe(point.figures.step_ns);
    });
  });

  it('have labels at the cursor, without unknown values', () => {
    const panels = panelsOf(all);
    const readingOf = (id: string, at: number): string[] => {
      const panel = panels.find((series_) => series_.id === id);
      return panel ? readingsAt(panel, at).map(({ text }) => text) : [];
    };
    const withDevice = all.points.findIndex(({ figures }) => figures.busy_share !== null);
    const without = all.points.findIndex(({ figures }) => figures.busy_share === null);
    expect(readingOf('busy', withDevice)).toHaveLength(1);
    expect(readingOf('busy', without)).toEqual([]);
    expect(readingOf('step', 0)).toContain(duration(all.points[0]?.figures.step_ns ?? 0));
  });

  it('interrupt a line at unknown values, and scale to the highest stack', () => {
    expect(stretches([1, 2, null, 3, null, null, 4, 5])).toEqual([[0, 1], [3], [6, 7]]);
    const column = (values: (number | null)[]): Series => ({
      kind: 'column',
      id: String(values),
      label: '',
      colour: '',
      values,
    });
    expect(largestOf([column([1, 5]), column([3, null])], 2)).toBe(5);
    expect(largestOf([column([1, 5]), column([3, 1])], 2)).toBe(6);
    expect([roundStep(1), roundStep(0.83), roundStep(50_000_000)]).toEqual([0.5, 0.5, 20_000_000]);
    expect([1, 4, 7, 8].map((most) => roundStep(most, 'counts'))).toEqual([1, 2, 5, 5]);
  });
});

it('summarizes the change of one series, or the range of unrelated runs', () => {
  const of = (...steps: (number | null)[]): TrendPoint[] =>
    steps.map((step_ns) => ({ ...(all.points[0] as TrendPoint), figures: { step_ns } }));
  expect(verdictOf(of(4e6, null, 2e6), 'spans')).toBe(
    'Mean step 4.00 ms → 2.00 ms, −50.0 % from the first to the last trace',
  );
  expect(verdictOf(of(4e6, 9e6, 2e6), 'all')).toBe('Mean steps between 2.00 ms and 9.00 ms');
  expect(verdictOf(of(4e6, null), 'spans')).toBe('');
});

it('lists all values in the table', () => {
  const { columns, rows } = tableOf(all, 'all');
  expect(rows).toHaveLength(all.points.length);
  const memory = columns.findIndex(({ key }) => key === 'memory_peak_bytes');
  expect(rows.map((row) => row[memory])).toEqual(
    all.points.map(({ figures }) => figures.memory_peak_bytes ?? null),
  );
  expect(columns.map(({ key }) => key)).not.toContain('memset_ns');
});

describe('the page', () => {
  const shown = async (trends: Trends): Promise<ReturnType<typeof renderInPage>> => {
    vi.spyOn(api, 'get').mockResolvedValue(trends);
    const runs = runsOf(trends);
    const page = renderInPage(<TrendsPage selection={firstOf(runs.runs[0])} runs={runs} />);
    await waitFor(() => expect(screen.queryByLabelText('Loading')).toBeNull());
    return page;
  };

  it('opens a trace from its row', async () => {
    const { store } = await shown(spans);
    await userEvent.click(screen.getByRole('button', { name: 'span 2' }));
    expect(store.current()).toMatchObject({ view: 'overview', worker: 'w', span: '2' });
  });

  it('moves one cursor in all charts', async () => {
    await shown(spans);
    const table = screen.getByRole('table', { name: 'Values of each trace' });
    const [, first] = within(table).getAllByRole('row');
    fireEvent.pointerEnter(first as HTMLElement);
    for (const name of ['Step time', 'Parts of the step', 'Findings']) {
      const panel = screen.getByRole('region', { name });
      expect(within(panel).getByText('span 1')).toBeTruthy();
    }
  });

  it('requests another scope, and keeps it in the URL', async () => {
    const { store } = await shown(spans);
    await userEvent.click(screen.getByRole('radio', { name: /^All runs/ }));
    expect(store.current().options).toEqual({ scope: 'all' });
    expect(vi.mocked(api.get).mock.lastCall?.[1]).toMatchObject({ scope: 'all', worker: null });
  });

  it('shows how to record more if there is one trace', async () => {
    await shown({ ...spans, points: spans.points.slice(0, 1), waiting_count: 2 });
    expect(screen.getByText('Not enough traces for a trend (needs 2, has 1)')).toBeTruthy();
    expect(screen.getByText(/2 more traces will follow/)).toBeTruthy();
  });
});
