import type { ReactNode } from 'react';
import type { HealthItem, Outcome } from '../../api/types.gen';
import { plural } from '../../core/format';
import { affectedBy } from '../../core/health';
import { Goto } from '../../widgets/goto';

const STATUS_LABELS: Readonly<Record<Outcome['status'], string>> = {
  found: 'has a finding',
  rejected: 'ruled out',
  passed: 'passed',
  'cannot-tell': 'inconclusive',
  'not-applicable': 'does not apply',
  failed: 'failed',
  suppressed: 'suppressed',
};

const EFFECT_LABELS = { low: 'Doubtful', withheld: 'Unusable' } as const;

interface Props {
  readonly item: HealthItem;
  readonly outcomes: readonly Outcome[];
}

/** The figures and checks that damage makes unreliable, with links. */
export function Affects({ item, outcomes }: Props): ReactNode {
  if (item.effect === 'none') {
    if (item.nature !== 'damage') return null;
    return <p className="muted">No figure is affected.</p>;
  }
  const { checks, figures } = affectedBy(item, outcomes);
  return (
    <div className="affects">
      <p>
        <strong>{EFFECT_LABELS[item.effect]}:</strong>{' '}
        {figures.map(({ name, view }, at) => (
          <span key={name}>
            {at > 0 && ', '}
            {view ? <Goto to={{ view }}>{name}</Goto> : name}
          </span>
        ))}
      </p>
      {checks.length > 0 && (
        <details>
          <summary>
            {figures.length > 0 && 'and '}
            {plural(checks.length, 'check')}
          </summary>
          <ul>
            {checks.map(({ rule, title, status }) => (
              <li key={rule}>
                <Goto to={{ view: 'advice', open: rule }}>{title}</Goto>{' '}
                <span className="muted">{STATUS_LABELS[status]}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
