import type { ReactNode } from 'react';
import type { AdviceChange, Comparison, Saving } from '../../api/types.gen';
import { change, duration, durationRange, plural } from '../../core/format';
import { sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Card } from '../../widgets/card';
import { Fold } from '../../widgets/fold';
import { Goto } from '../../widgets/goto';
import { PlainTable } from '../../widgets/plain_table';
import { isComparable } from './phrases';
import type { Side } from './sides';

interface Props {
  readonly comparison: Comparison;
  readonly before: Side;
}

const STATUS_LABELS: Readonly<Record<AdviceChange['status'], string>> = {
  fixed: 'fixed',
  new: 'new',
  worse: 'worse',
  better: 'better',
  still: 'unchanged',
  'not-checked': 'not checked',
};

/** The labels where the sides are not comparable: nothing was fixed, or became worse. */
const SIDE_LABELS: typeof STATUS_LABELS = {
  fixed: 'only before',
  new: 'only after',
  worse: 'both',
  better: 'both',
  still: 'both',
  'not-checked': 'not checked',
};

const range = (low: number, high: number): string => (high > 0 ? durationRange(low, high) : '–');

const nameOf = ({ worker, span }: Saving): string => `${worker}, span ${span}`;

/** The estimated and the actual saving on one scale. */
function Realised({ saving }: { readonly saving: Saving }): ReactNode {
  const { predicted_low_ns: low, predicted_high_ns: high, realised_mean_ns: mean } = saving;
  const most = Math.max(high, mean, 1) * 1.02;
  const at = (value: number): string => `${(Math.max(0, value) / most) * 100}%`;
  return (
    <div className="realised">
      <p>
        The followed advice ({plural(saving.rules.length, 'finding')} fixed or better) was estimated
        to save <strong>{durationRange(low, high)}</strong> per step; the mean step is{' '}
        <strong>{duration(Math.abs(mean))}</strong> {mean < 0 ? 'longer' : 'shorter'}, and the
        median step of the host changed by {change(-saving.realised_median_ns, 'ns')}.
      </p>
      <div className="realised-track" aria-hidden="true">
        <span
          className="realised-promise"
          style={{ left: at(low), width: `calc(${at(high)} - ${at(low)})` }}
        />
        <span className="realised-mark" style={{ left: at(mean) }} />
      </div>
      <p className="flex muted" aria-hidden="true">
        <span className="realised-promise" /> estimated <span className="realised-mark" /> actual;
        from 0 to {duration(most)}
      </p>
    </div>
  );
}

/** Findings before and after, with their potential savings and the savings achieved. */
export function AdviceCard({ comparison, before }: Props): ReactNode {
  const { advice, savings } = comparison;
  const labels = isComparable(comparison) ? STATUS_LABELS : SIDE_LABELS;
  const relevant = savings.filter((saving) => saving.predicted_high_ns > 0);
  const together = relevant.find(({ worker }) => worker === '');
  const perTrace = relevant.filter(({ worker }) => worker !== '');
  const { run, worker, span } = before;
  return (
    <Card
      title="Advice"
      note={advice.length === 0 ? '' : 'potential saving per step, before and after'}
    >
      {advice.length === 0 ? (
        <p className="muted">Neither side has findings.</p>
      ) : (
        <div className="scroll-x">
          <PlainTable
            className="plain advice-changes"
            label="Advice before and after"
            rows={advice}
            keyOf={({ rule, subject }) => `${rule} ${subject}`}
            columns={[
              {
                label: isComparable(comparison) ? 'Now' : 'Side',
                cell: ({ status }) => (
                  <span className={`tag strong note advice-${status}`}>{labels[status]}</span>
                ),
              },
              {
                label: 'Severity',
                cell: ({ severity_after, severity_before }) => {
                  const severity = severity_after ?? severity_before;
                  return severity && <SeverityBadge severity={severity} />;
                },
              },
              {
                label: 'Finding',
                isHeader: true,
                cell: ({ rule, title, subject, reason, severity_after }) => (
                  <>
                    <Goto
                      to={{
                        view: 'advice',
                        open: rule,
                        // A fixed finding is only in the trace before.
                        ...(severity_after === null ? { run: run.id, worker, span } : {}),
                      }}
                    >
                      {title}
                    </Goto>
                    {subject !== '' && <span className="advice-subject note mono">{subject}</span>}
                    {reason !== '' && (
                      <span className="advice-subject note">{sentence(reason)}</span>
                    )}
                  </>
                ),
              },
              {
                label: 'Potential saving before',
                isNumber: true,
                cell: ({ low_before_ns, high_before_ns }) => range(low_before_ns, high_before_ns),
              },
              {
                label: 'Potential saving now',
                isNumber: true,
                cell: ({ low_after_ns, high_after_ns }) => range(low_after_ns, high_after_ns),
              },
            ]}
          />
        </div>
      )}
      {together && <Realised saving={together} />}
      <Fold title="By trace" note="estimated and actual saving" size={perTrace.length}>
        {perTrace.map((saving) => (
          <li key={nameOf(saving)}>
            {nameOf(saving)}: estimated{' '}
            {durationRange(saving.predicted_low_ns, saving.predicted_high_ns)}, the mean step
            changed by {change(-saving.realised_mean_ns, 'ns')}
          </li>
        ))}
      </Fold>
    </Card>
  );
}
