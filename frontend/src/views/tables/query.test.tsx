import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { api, RequestError } from '../../api/client';
import type { QueryTables, Tables } from '../../api/types.gen';
import type { Patch } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import fixture from './fixture.json';
import answer from './fixtures/query.json';
import Page from './page';

const span = { trace: 't1', label: '1' };
const worker = { name: 'worker0', spans: [span] };
const selection = {
  run: { id: 'r1', name: 'run', workers: [worker, worker] },
  worker,
  span,
} as unknown as Selection;

const { tables } = fixture as unknown as Tables;
const names: QueryTables = {
  schema: 1,
  is_available: true,
  install: 'pip install "stepscope[sql]"',
  tables: tables.map(({ name, columns, ...table }) => ({
    ...table,
    name: name.replaceAll('-', '_'),
    columns: columns.map((column) => ({ name: column, unit: '', meaning: '' })),
  })),
  examples: [
    { title: 'Steps', sql: 'SELECT *\nFROM steps' },
    { title: 'Kernels', sql: 'FROM kernels' },
  ],
};
const requests: object[] = [];
let refusal: RequestError | null = null;
let response: object = answer;
let listed: object = names;

beforeEach(() => {
  requests.length = 0;
  refusal = null;
  response = answer;
  listed = names;
  vi.spyOn(api, 'get').mockImplementation(async (path, parameters) => {
    if (path === 'tables') return fixture as never;
    if (path === 'query-tables') return listed as never;
    requests.push(parameters);
    if (refusal) throw refusal;
    return response as never;
  });
});

const QUERY = { table: 'query' };

async function shown(start: Patch = { options: QUERY }) {
  const page = renderInPage(<Page selection={selection} />, start);
  const box = await screen.findByRole<HTMLTextAreaElement>('combobox', { name: 'SQL query' });
  return { ...page, box };
}

const options = (): readonly string[] =>
  screen
    .queryAllByRole('option')
    .flatMap((option) => option.querySelector('code')?.textContent ?? []);

describe('a query', () => {
  it('is opened from the list of tables', async () => {
    const { store } = renderInPage(<Page selection={selection} />);
    await userEvent.click(await screen.findByRole('link', { name: 'Query' }));
    expect(store.current().options).toEqual(QUERY);
    await screen.findByRole('combobox', { name: 'SQL query' });
    expect(requests.filter((request) => 'sql' in request)).toEqual([]);
  });

  it.each(['ctrlKey', 'metaKey'])('runs with %s and Enter, and is kept in the URL', async (key) => {
    const { box, store } = await shown({ options: QUERY, search: 'x' });
    fireEvent.change(box, { target: { value: ' from kernels ' } });
    expect(requests).toEqual([]);
    fireEvent.keyDown(box, { key: 'Enter', [key]: true });
    const grid = await screen.findByRole('grid');
    expect(grid.getAttribute('aria-rowcount')).toBe(String(answer.row_count + 1));
    expect(store.current()).toMatchObject({
      options: { table: 'query', sql: 'from kernels' },
      search: '',
    });
    expect(requests).toEqual([
      { run: 'r1', trace: 't1', sql: 'from kernels', start_ns: null, end_ns: null },
    ]);
  });

  it('of a link runs at once, and again with the button', async () => {
    const { box } = await shown({ options: { ...QUERY, sql: 'from steps' } });
    expect(box.value).toBe('from steps');
    await screen.findByRole('grid');
    await userEvent.click(screen.getByRole('button', { name: /^Run/ }));
    await waitFor(() => expect(requests).toHaveLength(2));
  });

  it('is filtered to the time range of all views, or covers all traces of the run', async () => {
    const time = { startNs: 5, endNs: 9 };
    await shown({ options: { ...QUERY, sql: 'from steps' }, time });
    await waitFor(() => expect(requests[0]).toMatchObject({ start_ns: 5, end_ns: 9 }));
    await userEvent.click(screen.getByRole('radio', { name: 'All traces of the run' }));
    await waitFor(() =>
      expect(requests[1]).toMatchObject({ trace: null, start_ns: null, end_ns: null }),
    );
  });

  it('that cannot run shows its message beside the text', async () => {
    const message = 'Binder Error: no column "x"\n\nLINE 1: select x\n               ^';
    refusal = new RequestError(400, 'bad-query', message, '');
    const { box } = await shown({ options: { ...QUERY, sql: 'select x' } });
    expect((await screen.findByRole('alert')).textContent).toBe(message);
    expect(box.getAttribute('aria-invalid')).toBe('true');
  });

  it('shows data that was not recorded as other tables do', async () => {
    refusal = new RequestError(422, 'not-recorded', 'modules: none', 'profile(with_stack=True)');
    await shown({ options: { ...QUERY, sql: 'from modules' } });
    await screen.findByText('To record it:');
  });

  it('without rows says so, and a plan is drawn as text', async () => {
    response = { ...answer, row_count: 0, values: { name: [] }, notes: ['modules: withheld'] };
    const { box } = await shown({ options: { ...QUERY, sql: 'from steps where false' } });
    await screen.findByText('The query has no rows.');
    await screen.findByText('modules: withheld.');
    response = {
      ...answer,
      row_count: 1,
      values: { explain_key: ['physical_plan'], explain_value: ['╭─ Scan ─╮\n╰────────╯'] },
    };
    fireEvent.change(box, { target: { value: 'explain from steps' } });
    fireEvent.keyDown(box, { key: 'Enter', ctrlKey: true });
    await screen.findByText(/Scan/);
  });

  it('with too many rows says what to do', async () => {
    response = { ...answer, all_row_count: 50_000, is_counted: true };
    await shown({ options: { ...QUERY, sql: 'from kernel_events' } });
    await screen.findByText(/The other rows are not sent/);
  });

  it('can start from an example', async () => {
    const { box } = await shown();
    const examples = screen.getByRole('combobox', { name: 'Examples' });
    const [first] = names.examples;
    await userEvent.selectOptions(examples, within(examples).getByText(first?.title ?? ''));
    expect(box.value).toBe(first?.sql);
    expect(requests).toEqual([]);
  });

  it('names the command that installs DuckDB where it is missing', async () => {
    listed = { ...names, is_available: false };
    const { box } = await shown();
    screen.getByText(names.install);
    fireEvent.change(box, { target: { value: 'from steps' } });
    expect(screen.getByRole('button', { name: /^Run/ }).hasAttribute('disabled')).toBe(true);
  });
});

describe('the completion', () => {
  it('is chosen by keys', async () => {
    const { box } = await shown();
    await userEvent.type(box, 'select name from kernel_');
    expect(options().slice(0, 3)).toEqual(['kernel_events', 'kernel_launches', 'kernel_sequences']);
    expect(box.getAttribute('aria-expanded')).toBe('true');
    await userEvent.keyboard('{ArrowDown}{ArrowDown}{ArrowUp}');
    const active = box.getAttribute('aria-activedescendant') ?? '';
    expect(document.getElementById(active)?.textContent).toContain('kernel_launches');
    await userEvent.keyboard('{Enter}');
    expect(box.value).toBe('select name from kernel_launches');
    expect(box.selectionStart).toBe(box.value.length);
    expect(options()).toEqual([]);
    expect(requests).toEqual([]);
  });

  it('replaces only the name at the caret', async () => {
    const { box } = await shown();
    fireEvent.change(box, { target: { value: 'select  from steps' } });
    await userEvent.type(box, 'dur', { initialSelectionStart: 7, initialSelectionEnd: 7 });
    expect(options()[0]).toBe('duration_ns');
    await userEvent.keyboard('{Tab}');
    expect(box.value).toBe('select duration_ns from steps');
    expect(box.selectionStart).toBe('select duration_ns'.length);
  });

  it('is chosen by the pointer, and closed by Escape', async () => {
    const { box } = await shown();
    await userEvent.type(box, 'from step');
    await userEvent.keyboard('{Escape}');
    expect(options()).toEqual([]);
    await userEvent.type(box, 's');
    await userEvent.type(box, '_{Backspace}{Backspace}');
    await userEvent.click(screen.getByRole('option', { name: /^steps/ }));
    expect(box.value).toBe('from steps');
  });

  it('opens on request, and lets a query run', async () => {
    const { box } = await shown();
    fireEvent.change(box, { target: { value: 'from steps where ' } });
    box.setSelectionRange(17, 17);
    expect(options()).toEqual([]);
    fireEvent.keyDown(box, { key: ' ', ctrlKey: true });
    expect(options()).toContain('duration_ns');
    fireEvent.keyDown(box, { key: 'Enter', ctrlKey: true });
    await waitFor(() => expect(requests).toHaveLength(1));
    expect(options()).toEqual([]);
  });
});
