import type { ReactNode } from 'react';
import type { HealthItem, Outcome } from '../../api/types.gen';
import { plural } from '../../core/format';
import { affectedBy } from '../../core/health';
import { Goto } from '../../widgets/goto';

const STATUS_WORDS: Readonly<Record<Outcome['status'], string>> = {
  found: 'found something',
  rejected: 'acquitted it',
  passed: 'found nothing',
  'cannot-tell': 'cannot tell',
  'not-applicable': 'does not apply',
  failed: 'failed',
  suppressed: 'put aside',
};

const EFFECT_WORDS = { low: 'Made doubtful', withheld: 'Not to be used' } as const;

interface Props {
  readonly item: HealthItem;
  readonly outcomes: readonly Outcome[];
}

/** What a piece of damage makes unreliable, each a link to where it is shown. */
export function Affects({ item, outcomes }: Props): ReactNode {
  if (item.effect === 'none') {
    if (item.nature !== 'damage') return null;
    return <p className="muted">No figure is made doubtful by it.</p>;
  }
  const { checks, figures } = affectedBy(item, outcomes);
  return (
    <div className="affects">
      <p>
        <strong>{EFFECT_WORDS[item.effect]}:</strong>{' '}
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
                <span className="muted">{STATUS_WORDS[status]}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
