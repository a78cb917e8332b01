/** What the tests of views share: a stand-in for the API, and a view rendered for a run of the fixtures. */
import { screen, within } from '@testing-library/react';
import type { ComponentType } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Runs, Table } from '../src/api/types.gen';
import { quantity } from '../src/core/format';
import { HOME } from '../src/state/location';
import type { Patch } from '../src/state/navigation';
import { type Selection, select } from '../src/state/selection';
import type { PageProps } from '../src/views/view';
import { DataTable } from '../src/widgets/table';
import { wholeName } from '../src/widgets/table/rows';
import fixture from './fixtures/runs.json';
import { type Rendered, renderInPage } from './render';

/** By path below `traces/<id>/`: a body, a refusal with its `code`, or a function of the parameters. */
type Responses = Record<string, unknown>;

interface FakeApi {
  responses: Responses;
  /** Requested paths with their parameters. */
  readonly requests: string[];
  /** The parameters of the last request of a path. */
  readonly last: (path: string) => URLSearchParams;
}

const NOT_FOUND = { code: 'not-found', message: 'Not found.', hint: '' };

/** Answers requests from before each test on, and forgets changes of the responses after it. */
export function fakeApi(initial: Responses): FakeApi {
  const requests: string[] = [];
  const last = (path: string): URLSearchParams => {
    const request = requests.findLast((other) => other.startsWith(`${path}?`)) ?? '';
    return new URLSearchParams(request.split('?')[1]);
  };
  const api: FakeApi = { responses: {}, requests, last };
  const respond = (url: URL): Response => {
    const path = String(url).replace(/^.*\/api\//, '');
    requests.push(path);
    const [name = '', query] = path.replace(/^(?:traces|runs)\/[^/]+\//, '').split('?');
    const response = api.responses[name] ?? NOT_FOUND;
    const body = typeof response === 'function' ? response(new URLSearchParams(query)) : response;
    if (body instanceof Response) return body;
    const isRefused = typeof body === 'object' && body !== null && 'code' in body;
    const status = body === NOT_FOUND ? 404 : isRefused ? 422 : 200;
    return new Response(JSON.stringify(body), { status });
  };
  beforeEach(() => {
    requests.length = 0;
    api.responses = { ...initial };
    vi.stubGlobal('fetch', (url: URL) => Promise.resolve(respond(url)));
  });
  afterEach(() => vi.unstubAllGlobals());
  return api;
}

/** What the page shows of the fixture's runs, or of others. */
export function selectionOf(start: Patch = {}, runs: unknown = fixture): Selection {
  const selected = select(runs as Runs, { ...HOME, ...start });
  if (selected.kind !== 'selected') throw new Error('the fixture has no such run');
  return selected.selection;
}

export const renderView = (
  Page: ComponentType<PageProps>,
  view: string,
  start: Patch = {},
): Rendered => renderInPage(<Page selection={selectionOf()} />, { view, ...start });

/** The tests of a view that is one table. */
export function describeTable(name: string, label: string, fixture: unknown): void {
  const table = fixture as Table;
  const show = (value: Table): void => {
    renderInPage(
      <DataTable table={value} name={name} label={label} traceName={['run']} isStale={false} />,
    );
  };
  describe(`the ${name} of a trace`, () => {
    it('come largest first by the default order of the table', () => {
      show(table);
      const column = table.columns.find(({ key }) => key === table.sort);
      const [top] = (table.values[table.sort] as (number | null)[])
        .map((value, at) => ({ value, at }))
        .sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
      const first = screen.getAllByRole('row')[1] as HTMLElement;
      if (!top || !column) throw new Error('the fixture has rows and the column it is sorted by');
      expect(within(first).getByTitle(wholeName(table, top.at))).toBeTruthy();
      expect(first.textContent).toContain(quantity(top.value, column.unit));
      const head = screen.getByRole('columnheader', { name: column.label });
      expect(head.ariaSort ?? 'descending').toBe('descending');
    });

    it('show every column that is not hidden by default', () => {
      show(table);
      const heads = screen.getAllByRole('columnheader').map((head) => head.textContent);
      const columns = table.columns.filter(({ hidden }) => !hidden);
      expect(heads).toEqual(columns.map((column) => column.label));
    });

    it('give the reason if there are none', () => {
      show({ ...table, row_count: 0, values: {}, empty: 'Nothing ran on a device.' });
      expect(screen.getByText('Nothing ran on a device.')).toBeTruthy();
      expect(screen.queryByRole('table')).toBeNull();
    });
  });
}
