import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Rendered } from '../../../tests/render';
import { encodeTile } from '../../../tests/timeline_tiles';
import { fakeApi, renderView } from '../../../tests/views';
import type { TimelineSlice } from '../../api/types.gen';
import { duration } from '../../core/format';
import * as files from '../../host/download';
import type { Patch } from '../../state/navigation';
import tracks from './fixture.json';
import area from './fixtures/timeline-area.json';
import names from './fixtures/timeline-names.json';
import search from './fixtures/timeline-search.json';
import listed from './fixtures/timeline-slices.json';
import slice from './fixtures/timeline-slices-3243.json';
import Page from './page';
import { asText } from './selection';
import { marked } from './timeline';
import { linkedTo } from './use_selected_slice';
import { Viewer } from './viewer';

const SLICE = slice as unknown as TimelineSlice;
const api = fakeApi({
  'timeline/tracks': tracks,
  'timeline/names': names,
  'timeline/slices/3243': slice,
  'timeline/slices': listed,
  'timeline/search': search,
  'timeline/area': area,
  'timeline/at': { schema: 1, hit: search.hits[0] },
  'timeline/neighbour': { schema: 1, hit: search.hits[0] },
  'timeline/tiles': (parameters: URLSearchParams) =>
    new Response(
      encodeTile([], [], Number(parameters.get('level')), Number(parameters.get('tile'))),
    ),
});
const isRequested = (text: string): boolean => api.requests.some((path) => path.includes(text));

async function shown(start: Patch = {}): Promise<Rendered> {
  const rendered = renderView(Page, 'timeline', start);
  await screen.findByRole('heading', { name: 'Timeline' });
  return rendered;
}

const labels = (): string[] =>
  within(screen.getByRole('list', { name: /^Tracks: / }))
    .getAllByRole('listitem')
    .map((item) => item.querySelector('.track-label')?.textContent ?? '');

describe('the tracks', () => {
  const isCounter = ({ kind }: { readonly kind: string }): boolean => kind === 'counter';

  it('are in the server’s order below their groups, the counters collapsed below them', async () => {
    const { store } = await shown();
    const others = tracks.tracks.filter((track) => !isCounter(track)).map((track) => track.label);
    expect(labels()).toEqual([...others, 'Counters']);
    await userEvent.click(screen.getByRole('button', { name: /^Counters/ }));
    const counters = tracks.tracks.filter(isCounter).map((track) => track.label);
    expect(labels()).toEqual([...others, 'Counters', ...counters]);
    expect(store.current().options).toEqual({ toggle: String(tracks.tracks.length) });
  });

  it('are pinned by the keyboard', async () => {
    const { store } = await shown();
    const main = screen.getByRole('button', { name: /^Main thread/ });
    main.focus();
    await userEvent.tab();
    await userEvent.tab();
    expect(document.activeElement?.getAttribute('aria-label')).toBe('Pin Main thread');
    await userEvent.keyboard('{Enter}');
    expect(store.current().options).toEqual({ pin: '14' });
    const pinned = screen.getByRole('list', { name: 'Pinned tracks' });
    expect(pinned.textContent).toContain('Main thread');
    expect(screen.getAllByRole('button', { name: 'Pin Main thread' })).toHaveLength(2);
  });

  it('are filtered, hidden, pinned and collapsed in the URL', async () => {
    const { store } = await shown();
    await userEvent.click(screen.getByRole('button', { name: 'Hide Stream 20' }));
    await userEvent.click(screen.getByRole('button', { name: 'Pin Stream 7' }));
    await userEvent.click(screen.getByRole('button', { name: /^Process 4242/ }));
    expect(store.current().options).toEqual({ hide: '3', pin: '2', toggle: '13' });
    expect(labels()).not.toContain('Stream 20');
    expect(labels()).not.toContain('Main thread');
    expect(screen.getByRole('list', { name: 'Pinned tracks' }).textContent).toContain('Stream 7');
    await userEvent.type(screen.getByRole('searchbox', { name: /Filter tracks/ }), 'stream');
    // Annotations say in their detail on which stream they are.
    await waitFor(() =>
      expect(labels()).toEqual(['GPU 0', 'Stream 7', 'Annotations', 'Annotations']),
    );
  });

  it('are moved by the keyboard', async () => {
    const { store } = await shown();
    const main = screen.getByRole('button', { name: /^Main thread/ });
    fireEvent.keyDown(main, { key: 'ArrowDown', altKey: true });
    expect(store.current().options.order).toBe('15.14');
    expect(labels().filter((label) => label.endsWith(' thread'))).toEqual([
      'Backward thread',
      'Main thread',
    ]);
  });

  it('can be shown again if all are hidden', async () => {
    const { store } = await shown({ options: { tracks: 'nothing is called that' } });
    await userEvent.click(screen.getByRole('button', { name: 'Show all tracks' }));
    expect(store.current().options).toEqual({});
  });
});

describe('the selected slice', () => {
  it('is the URL’s event, with its times, launch and arguments', async () => {
    await shown({ event: 3243 });
    expect(await screen.findByRole('heading', { name: SLICE.name })).toBeTruthy();
    expect(screen.getAllByText(duration(SLICE.duration_ns)).length).toBeGreaterThan(0);
    expect(screen.getByText('launched by')).toBeTruthy();
    expect(screen.getByText('[6864,1,1]')).toBeTruthy();
    expect(
      screen.getByText(`${SLICE.name}, ${duration(SLICE.duration_ns)}, on GPU 0, Stream 7`),
    ).toBeTruthy();
  });

  it('links to linked slices, and is cleared by Escape', async () => {
    const { store } = await shown({ event: 3243 });
    await userEvent.click(await screen.findByText('launched by'));
    expect(store.current().event).toBe(SLICE.links[0]?.event);
    fireEvent.keyDown(document.body, { key: 'Escape' });
    expect(store.current().event).toBeNull();
  });

  it('shows an error if it does not exist', async () => {
    await shown({ event: 77 });
    expect(await screen.findByText('Not found.')).toBeTruthy();
  });

  it('moves to its neighbour by the arrow keys', async () => {
    const { store } = await shown({ event: 3243 });
    await screen.findByRole('heading', { name: SLICE.name });
    await userEvent.click(screen.getByRole('application'));
    await waitFor(() => expect(store.current().event).toBeNull());
    store.write({ ...store.current(), event: 3243 }, 'push');
    await screen.findByRole('heading', { name: SLICE.name });
    fireEvent.keyDown(screen.getByRole('application'), { key: 'ArrowRight' });
    await waitFor(() => expect(isRequested('neighbour?event=3243&direction=right')).toBe(true));
  });

  describe('while its neighbour is being loaded', () => {
    /** The answers on neighbours to the right, which come when the test releases them. */
    const delayed: (() => void)[] = [];
    beforeEach(() => {
      delayed.length = 0;
      const atOnce = globalThis.fetch as unknown as (url: URL) => Promise<Response>;
      vi.stubGlobal('fetch', (url: URL) => {
        if (!String(url).includes('direction=right')) return atOnce(url);
        const hit = { ...search.hits[1], event: 4711 };
        return new Promise<Response>((done) => {
          delayed.push(() => done(new Response(JSON.stringify({ schema: 1, hit }))));
        });
      });
    });
    const pressed = (key: string): boolean =>
      fireEvent.keyDown(screen.getByRole('application'), { key });
    const letCome = async (): Promise<void> => {
      for (const come of delayed) come();
      await new Promise((done) => setTimeout(done, 20));
    };

    it('stays if another slice was selected', async () => {
      const { store } = await shown({ event: 3243 });
      await screen.findByRole('heading', { name: SLICE.name });
      pressed('ArrowRight');
      pressed('ArrowLeft');
      await waitFor(() => expect(store.current().event).toBe(search.hits[0]?.event));
      await letCome();
      expect(store.current().event).toBe(search.hits[0]?.event);
    });

    it('stays selected when the timeline is left', async () => {
      const { store, unmount } = await shown({ event: 3243 });
      await screen.findByRole('heading', { name: SLICE.name });
      pressed('ArrowRight');
      unmount();
      await letCome();
      expect(delayed).toHaveLength(1);
      expect(store.current().event).toBe(3243);
    });
  });

  describe('that is merged with others', () => {
    const merged = {
      track: 2,
      row: 0,
      name: 0,
      event: 3243,
      count: 214,
      category: 0,
      busy: 0.5,
      startNs: 24_000_000,
      endNs: 25_000_000,
    };
    const clicked = async (): Promise<Rendered> => {
      vi.spyOn(Viewer.prototype, 'pickAt').mockReturnValue(merged);
      const rendered = await shown();
      await userEvent.click(screen.getByRole('application'));
      await screen.findByRole('heading', { name: SLICE.name });
      return rendered;
    };
    afterEach(() => vi.restoreAllMocks());

    it('shows their number, and zooms to separate them', async () => {
      const fit = vi.spyOn(Viewer.prototype, 'fit');
      await clicked();
      expect(isRequested('at?track=2&row=0&time_ns=24500000')).toBe(true);
      expect(screen.getByRole('note').textContent).toContain('One of 214 slices drawn as one');
      await userEvent.click(screen.getByRole('button', { name: 'Zoom to all 214' }));
      expect(fit).toHaveBeenCalledWith({ start: 24_000_000, end: 25_000_000 });
    });

    it('does not scroll on click, even if another than the longest is in the middle', async () => {
      const reveal = vi.spyOn(Viewer.prototype, 'reveal');
      merged.event = 99;
      await clicked();
      merged.event = 3243;
      expect(reveal).not.toHaveBeenCalled();
    });

    it('shows no such note if selected otherwise', async () => {
      const { store } = await clicked();
      store.write({ ...store.current(), event: null }, 'push');
      store.write({ ...store.current(), search: 'gemm' }, 'push');
      await screen.findByText('204 results');
      fireEvent.keyDown(document.body, { key: 'n' });
      await screen.findByRole('heading', { name: SLICE.name });
      expect(screen.queryByRole('note')).toBeNull();
    });
  });

  it('is copied as text with all arguments', () => {
    const text = asText(SLICE);
    expect(text).toContain('duration: 507,803 ns');
    expect(text).toContain('stream: 7\n');
  });

  it('links to the nearest slices before and after it', () => {
    const [first] = SLICE.links;
    expect(linkedTo(SLICE, -1)).toBe(first?.event);
    expect(linkedTo(SLICE, 1)).toBe(SLICE.links.at(-1)?.event);
    expect(linkedTo({ ...SLICE, links: [] }, 1)).toBeNull();
    expect(linkedTo(undefined, 1)).toBeNull();
  });
});

describe('a search', () => {
  it('goes to the next hit on Enter with the current text, and back on Shift+Enter', async () => {
    const { store } = await shown();
    const box = screen.getByRole('searchbox', { name: 'Search the whole trace' });
    fireEvent.change(box, { target: { value: 'gemm' } });
    fireEvent.keyDown(box, { key: 'Enter' });
    expect(store.current().search).toBe('gemm');
    await waitFor(() => expect(store.current().event).toBe(search.hits[0]?.event));
    fireEvent.keyDown(box, { key: 'Enter' });
    await waitFor(() => expect(store.current().event).toBe(search.hits[1]?.event));
    fireEvent.keyDown(box, { key: 'Enter', shiftKey: true });
    await waitFor(() => expect(store.current().event).toBe(search.hits[0]?.event));
  });

  it('searches the whole trace, counts, and steps through the hits', async () => {
    const { store } = await shown({ search: 'gemm' });
    expect(await screen.findByText('204 results')).toBeTruthy();
    fireEvent.keyDown(document.body, { key: 'n' });
    await waitFor(() => expect(store.current().event).toBe(search.hits[0]?.event));
    expect(screen.getByText('1 of 204')).toBeTruthy();
    fireEvent.keyDown(document.body, { key: 'n' });
    await waitFor(() => expect(store.current().event).toBe(search.hits[1]?.event));
    fireEvent.keyDown(document.body, { key: 'p' });
    await waitFor(() => expect(store.current().event).toBe(search.hits[0]?.event));
    expect(isRequested('timeline/search?q=gemm&regex=false')).toBe(true);
  });

  it('is exported in full, with the trace’s name', async () => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    await shown({ search: 'gemm', options: { tab: 'search' } });
    await userEvent.click(await screen.findByRole('button', { name: 'CSV' }));
    await waitFor(() => expect(saved).toHaveBeenCalled());
    expect(isRequested('q=gemm&regex=false&limit=10000')).toBe(true);
    const [name, , text] = saved.mock.calls[0] ?? [];
    expect(name).toMatch(/^.+_.+_hits_gemm\.csv$/);
    const [head, first] = String(text).split('\r\n');
    expect(head).toBe('Name,Start (ns),Duration (ns),Category,Track,Event');
    const [hit] = search.hits;
    expect(first).toBe(
      `${hit?.name},${hit?.start_ns},${hit?.duration_ns},Kernel,"GPU 0, Stream 7",${hit?.event}`,
    );
    saved.mockRestore();
  });

  it('lists its hits as a table', async () => {
    await shown({ search: 'gemm', options: { tab: 'search' } });
    const results = await screen.findByRole('table', { name: 'Results for gemm' });
    expect(within(results).getAllByRole('row')).toHaveLength(1 + search.hits.length);
  });

  it('is not requested for an invalid regular expression', async () => {
    await shown({ search: '/(/' });
    expect(screen.getByRole('alert').textContent).toContain('Not a regular expression');
    expect(isRequested('timeline/search')).toBe(false);
  });
});

describe('an area', () => {
  const options = { area: '20000000-60000000', 'area-tracks': '2.14', tab: 'area' };

  it('is summarized by name, the most time first, and by track', async () => {
    await shown({ options });
    const names = await screen.findByRole('grid', { name: 'Time in the area by name' });
    const totals = area.table.values.total_ns.toSorted((a, b) => b - a);
    const [, first] = within(names).getAllByRole('row');
    expect(first?.textContent).toContain(duration(totals[0] ?? 0));
    const heads = within(names).getAllByRole('columnheader');
    expect(heads.map((head) => head.textContent)).toEqual([
      'Name',
      'Category',
      'Count',
      'Total',
      'Share',
      'Self',
      'Mean',
      'Min',
      'Max',
    ]);
    await userEvent.click(screen.getByRole('radio', { name: 'By track' }));
    const busy = screen.getByRole('grid', {
      name: 'Busy and idle time of the tracks in the area',
    });
    const rows = within(busy).getAllByRole('row');
    expect(rows.map((row) => row.firstElementChild?.textContent).slice(1)).toEqual([
      'Process 4242, Main thread',
      'GPU 0, Stream 7',
    ]);
    expect(rows[2]?.textContent).toContain('70.2 %11.9 ms');
  });

  it('is extended to all tracks by a button', async () => {
    const { store } = await shown({ options });
    await userEvent.click(await screen.findByRole('button', { name: 'All tracks' }));
    expect(store.current().options).toEqual({ area: '20000000-60000000', tab: 'area' });
    expect(screen.queryByRole('button', { name: 'All tracks' })).toBeNull();
  });

  it('is zoomed to by a button and a key', async () => {
    const fit = vi.spyOn(Viewer.prototype, 'fit').mockImplementation(() => undefined);
    await shown({ options });
    await userEvent.click(screen.getByRole('button', { name: 'Fit selection' }));
    expect(fit).toHaveBeenLastCalledWith({ start: 20_000_000, end: 60_000_000, tracks: [2, 14] });
    fireEvent.keyDown(document.body, { key: 'f' });
    expect(fit).toHaveBeenCalledTimes(2);
    fit.mockRestore();
  });

  it('is selected by dragging, which can be set to pan and stays so', async () => {
    const { store, unmount } = await shown();
    const dragged = (init: PointerEventInit = {}): void => {
      const canvas = screen.getByRole('application');
      fireEvent.pointerDown(canvas, { clientX: 10, clientY: 40, ...init });
      fireEvent.pointerMove(canvas, { clientX: 60, clientY: 40, ...init });
      fireEvent.pointerUp(canvas, { clientX: 60, clientY: 40, ...init });
    };
    dragged();
    expect(store.current().options).toHaveProperty('area');
    expect(store.current().options.tab).toBe('area');
    fireEvent.keyDown(document.body, { key: 'Escape' });
    expect(store.current().options).not.toHaveProperty('area');
    dragged({ shiftKey: true });
    expect(store.current().options).not.toHaveProperty('area');
    await userEvent.click(screen.getByRole('radio', { name: 'Pan' }));
    const zoomBy = vi.spyOn(Viewer.prototype, 'zoomBy').mockImplementation(() => undefined);
    await userEvent.keyboard('w');
    expect(zoomBy).toHaveBeenCalledOnce(); // a radio button leaves the keys to the view
    zoomBy.mockRestore();
    unmount();
    const again = await shown();
    expect((screen.getByRole('radio', { name: 'Pan' }) as HTMLInputElement).checked).toBe(true);
    dragged();
    expect(again.store.current().options).not.toHaveProperty('area');
    dragged({ shiftKey: true });
    expect(again.store.current().options).toHaveProperty('area');
    localStorage.clear();
  });

  it('is exported with the trace’s name', async () => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    await shown({ options });
    await userEvent.click(await screen.findByRole('button', { name: 'CSV' }));
    expect(saved.mock.calls[0]?.[0]).toMatch(/^.+_.+_timeline-area-by-name\.csv$/);
    saved.mockRestore();
  });

  it('is the visible range, or the selected slice, by a button', async () => {
    const { store } = await shown({ options: { tab: 'area', at: '1000-2000' } });
    await userEvent.click(await screen.findByRole('button', { name: 'Summarize visible range' }));
    expect(store.current().options.area).toBe('1000-2000');
    await screen.findByRole('grid', { name: 'Time in the area by name' });
    store.write({ ...store.current(), event: 3243 }, 'push');
    await screen.findByText(`${SLICE.name}, ${duration(SLICE.duration_ns)}, on GPU 0, Stream 7`);
    await userEvent.click(screen.getByRole('tab', { name: 'Selection' }));
    await userEvent.click(await screen.findByRole('button', { name: 'Summarize' }));
    const { start_ns: startNs, duration_ns: ns } = SLICE;
    expect(store.current().options).toMatchObject({ area: `${startNs}-${startNs + ns}` });
    expect(store.current().options['area-tracks']).toBeUndefined();
  });

  it('has no button for the slice if none is selected', async () => {
    await shown({ options: { tab: 'area' } });
    const button = await screen.findByRole('button', { name: 'Summarize selected slice' });
    expect((button as HTMLButtonElement).disabled).toBe(true);
  });

  it('becomes the selected time of all views', async () => {
    const { store } = await shown({ options });
    await userEvent.click(await screen.findByRole('button', { name: 'Filter to selection' }));
    expect(store.current().time).toEqual({ startNs: 20_000_000, endNs: 60_000_000 });
  });
});

it('axis and minimap ignore other mouse buttons', async () => {
  const { store } = await shown();
  for (const name of [/^Time axis/, /^The whole trace and its visible range/]) {
    const canvas = screen.getByRole('img', { name });
    fireEvent.pointerDown(canvas, { button: 2, clientX: 0 });
    fireEvent.pointerMove(canvas, { clientX: 90 });
    fireEvent.pointerUp(canvas, { clientX: 90 });
  }
  expect(store.current().time).toBeNull();
});

describe('marks', () => {
  it('are set and removed at the same time', () => {
    expect(marked([10, 50], 30.4, 2)).toEqual([10, 30, 50]);
    expect(marked([10, 30, 50], 31, 2)).toEqual([10, 50]);
  });

  it('are set by a button at the middle or at the selected slice', async () => {
    const { store } = await shown({ options: { at: '1000-2000' } });
    const button = screen.getByRole('button', { name: 'Mark' });
    await userEvent.click(button);
    expect(store.current().options.marks).toBe('1500');
    store.write({ ...store.current(), event: 3243 }, 'push');
    await screen.findByRole('heading', { name: SLICE.name });
    await userEvent.click(button);
    expect(store.current().options.marks).toBe(`1500.${SLICE.start_ns}`);
  });

  it('are listed with their distances', async () => {
    const { store } = await shown({ options: { marks: '1000000.3000000' } });
    const list = screen.getByRole('table', { name: 'Marked times' });
    expect(list.textContent).toContain('2.00 ms from A');
    await userEvent.click(within(list).getByRole('button', { name: 'Remove mark B' }));
    expect(store.current().options.marks).toBe('1000000');
  });
});

it('the visible slices of a track are listed as a table', async () => {
  await shown({ options: { tab: 'table' } });
  const table = await screen.findByRole('table', { name: /^Visible slices of / });
  expect(within(table).getAllByRole('row')).toHaveLength(1 + listed.hits.length);
});

it('a trace without events shows what to do', async () => {
  api.responses['timeline/tracks'] = { ...tracks, tracks: [], end_ns: 0 };
  renderView(Page, 'timeline');
  expect(await screen.findByText('No events to show')).toBeTruthy();
});
