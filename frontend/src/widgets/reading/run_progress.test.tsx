import { screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { cancelledSpan, queuedSpan, readingSpan, runOf, spanOf } from '../../../tests/states';
import { RunProgress } from './run_progress';

const ready = Array.from({ length: 412 }, (_, at) => spanOf({ trace: `r${at}` }));
const queued = Array.from({ length: 612 }, (_, at) => queuedSpan(at + 1, { trace: `q${at}` }));

describe('above what is said of a whole run', () => {
  it('stands of how many files it is, and how to end the reading', () => {
    renderInPage(<RunProgress run={runOf('job', 'reading', [...ready, ...queued])} />);
    expect(screen.getByText('412 of 1,024 read')).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Stop reading of job' })).toBeTruthy();
    expect(screen.getAllByRole('progressbar')).toHaveLength(1);
  });

  it('stands nothing when all is read or given up, or where there is one file only', () => {
    const over = renderInPage(
      <RunProgress run={runOf('job', 'ready', [spanOf(), cancelledSpan({ trace: 't2' })])} />,
    );
    const alone = renderInPage(<RunProgress run={runOf('one', 'reading', [readingSpan()])} />);
    expect([over.container.innerHTML, alone.container.innerHTML]).toEqual(['', '']);
  });
});
