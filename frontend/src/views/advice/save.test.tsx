import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { claim, mergedOutcome, outcome, runReport } from '../../../tests/samples';
import { toCsv } from '../../core/export';
import * as files from '../../host/download';
import { Advice } from './advice';
import { dismissals } from './dismissed';
import { findingsTable } from './save';

const finding = outcome({
  severity: 'warning',
  confidence: 'high',
  message: 'A value, read back',
  claim: { ...claim(3000), low_ns: 1000, high_ns: 3000, share: 0.3, steps: '1-3' },
  locations: [{ path: 'train.py', line: 7, function: 'step' }],
  fingerprint: 'f1',
});
const seen = outcome({ rule: 'other', title: 'Other', severity: 'info', fingerprint: 'f2' });
const passed = outcome({ rule: 'fine', status: 'passed' });
const report = runReport([finding, seen, passed]);

beforeEach(() => localStorage.clear());
afterEach(() => vi.restoreAllMocks());

async function exported(format: 'CSV' | 'JSON'): Promise<[string, string]> {
  const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
  const traceRefs = [{ trace: 't1', rank: 0, name: 'worker0', span: '1' }];
  renderInPage(
    <Advice
      report={report}
      trace="t1"
      name="worker0, span 1"
      traceRefs={traceRefs}
      choice={null}
    />,
    { open: 'none' },
  );
  await userEvent.click(screen.getByText('Export'));
  await userEvent.click(screen.getByRole('button', { name: format }));
  await vi.waitFor(() => expect(saved).toHaveBeenCalledTimes(1));
  const [name = '', , body = ''] = saved.mock.calls[0] ?? [];
  return [name, String(body)];
}

it('the table has one row per finding with exact numbers', () => {
  expect(toCsv(findingsTable({ outcomes: [finding] }))).toBe(
    'rule,title,category,severity,confidence,worker,span,saves at least (ns),saves at most (ns),' +
      'saves at most (share of 1),of the step,steps,message,fix,effort,risk,lines,doubts,fingerprint\r\n' +
      'item-sync,Reading single values back stalls the step,synchronisation,warning,high,worker0,1,' +
      '1000,3000,0.3,recorded,1-3,"A value, read back",,,,train.py:7,,f1\r\n',
  );
});

it('the table of a job has ranks and steps per finding', () => {
  const merged = mergedOutcome({
    outcome: finding,
    where: 'ranks 0-3 of 8',
    when: 'in every step',
  });
  const table = findingsTable({ merged: [merged] });
  const row = Object.fromEntries(table.columns.map(({ key }, at) => [key, table.rows[0]?.[at]]));
  expect(row).toMatchObject({
    rule: 'item-sync',
    where: 'ranks 0-3 of 8',
    when: 'in every step',
    message: 'A value, read back',
  });
});

it('CSV omits dismissed findings', async () => {
  dismissals.dismiss(seen);
  const [name, body] = await exported('CSV');
  expect(name).toBe(`${report.name}_worker0_1_advice.csv`);
  expect(body.trim().split('\r\n')).toHaveLength(2);
  expect(body).toContain('item-sync,');
  dismissals.restore(seen);
});

it('JSON is the whole report including passed checks', async () => {
  const [name, body] = await exported('JSON');
  expect(name).toMatch(/_advice\.json$/);
  expect(JSON.parse(body)).toEqual(JSON.parse(JSON.stringify(report)));
});
