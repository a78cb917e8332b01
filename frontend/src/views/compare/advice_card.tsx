import type { ReactNode } from 'react';
import type { AdviceChange, Comparison, Saving } from '../../api/types.gen';
import { change, duration, durationRange, plural } from '../../core/format';
import { sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Fold } from '../../widgets/fold';
import { Goto } from '../../widgets/goto';
import type { Side } from './sides';

interface Props {
  readonly comparison: Comparison;
  readonly before: Side;
}

const WORDS: Readonly<Record<AdviceChange['status'], string>> = {
  fixed: 'fixed',
  new: 'new',
  worse: 'worse',
  better: 'better',
  still: 'still there',
  'not-checked': 'not checked',
};

const range = (low: number, high: number): string => (high > 0 ? durationRange(low, high) : '–');

function Row({ of, before }: { readonly of: AdviceChange; readonly before: Side }): ReactNode {
  const severity = of.severity_after ?? of.severity_before;
  const here = { view: 'advice', open: of.rule };
  const { run, worker, span } = before;
  // What is fixed is told of the recording before only.
  const to = of.severity_after === null ? { ...here, run: run.id, worker, span } : here;
  return (
    <tr>
      <td>
        <span className={`advice-status advice-${of.status}`}>{WORDS[of.status]}</span>
      </td>
      <td>{severity && <SeverityBadge severity={severity} />}</td>
      <th scope="row">
        <Goto to={to}>{of.title}</Goto>
        {of.subject !== '' && <span className="advice-subject mono">{of.subject}</span>}
        {of.reason !== '' && <span className="advice-subject">{sentence(of.reason)}</span>}
      </th>
      <td className="number">{range(of.low_before_ns, of.high_before_ns)}</td>
      <td className="number">{range(of.low_after_ns, of.high_after_ns)}</td>
    </tr>
  );
}

const nameOf = ({ worker, span }: Saving): string => `${worker}, span ${span}`;

/** What was promised and what came of it, on one scale. */
function Realised({ saving }: { readonly saving: Saving }): ReactNode {
  const { predicted_low_ns: low, predicted_high_ns: high, realised_mean_ns: mean } = saving;
  const most = Math.max(high, mean, 1) * 1.02;
  const at = (value: number): string => `${(Math.max(0, value) / most) * 100}%`;
  return (
    <div className="realised">
      <p>
        Advice that was followed ({plural(saving.rules.length, 'finding')}) promised{' '}
        <strong>{durationRange(low, high)}</strong> a step; the mean step{' '}
        {mean < 0 ? 'lost' : 'won'} <strong>{duration(Math.abs(mean))}</strong>, and the median of
        the host’s loop changed by {change(-saving.realised_median_ns, 'ns')}.
      </p>
      <div className="realised-track" aria-hidden="true">
        <span
          className="realised-promise"
          style={{ left: at(low), width: `calc(${at(high)} - ${at(low)})` }}
        />
        <span className="realised-mark" style={{ left: at(mean) }} />
      </div>
      <p className="realised-key muted" aria-hidden="true">
        <span className="realised-promise" /> promised <span className="realised-mark" /> won; from
        0 to {duration(most)}
      </p>
    </div>
  );
}

/** Savings of which something can have come. */
const followed = (savings: readonly Saving[]): Saving[] =>
  savings.filter((saving) => saving.predicted_high_ns > 0);

/** What became of advice, and of what it promised. */
export function AdviceCard({ comparison, before }: Props): ReactNode {
  const { advice, savings } = comparison;
  const told = followed(savings);
  const together = told.find(({ worker }) => worker === '');
  const each = told.filter(({ worker }) => worker !== '');
  return (
    <section className="card">
      <div className="card-head">
        <h2>Advice</h2>
        <p>{advice.length === 0 ? '' : 'what it promised a step, before and after'}</p>
      </div>
      {advice.length === 0 ? (
        <p className="muted">There is no advice on either side.</p>
      ) : (
        <div className="scroll-x">
          <table className="plain advice-changes" aria-label="Advice before and after">
            <thead>
              <tr>
                <th scope="col">Now</th>
                <th scope="col">Severity</th>
                <th scope="col">Advice</th>
                <th scope="col" className="number">
                  Promised before
                </th>
                <th scope="col" className="number">
                  Promises now
                </th>
              </tr>
            </thead>
            <tbody>
              {advice.map((of) => (
                <Row key={`${of.rule} ${of.subject}`} of={of} before={before} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {together && <Realised saving={together} />}
      <Fold title="Each recording" note="promised, and what became of it" size={each.length}>
        {each.map((saving) => (
          <li key={nameOf(saving)}>
            {nameOf(saving)}: promised{' '}
            {durationRange(saving.predicted_low_ns, saving.predicted_high_ns)}, the mean step
            changed by {change(-saving.realised_mean_ns, 'ns')}
          </li>
        ))}
      </Fold>
    </section>
  );
}
