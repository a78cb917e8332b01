import type { ReactNode } from 'react';
import type { HealthItem } from '../api/types.gen';
import { Icon } from './icon';
import './badge.css';

export type Severity = HealthItem['severity'];

const WORDS: Record<Severity, string> = { critical: 'Critical', warning: 'Warning', info: 'Info' };

/** How bad: icon, word and colour, never colour alone. */
export function SeverityBadge({ severity }: { readonly severity: Severity }): ReactNode {
  return (
    <span className={`severity inline severity-${severity}`}>
      <Icon name={severity} size={15} />
      {WORDS[severity]}
    </span>
  );
}

/** Says that a trace was written, not recorded. */
export function SyntheticBadge(): ReactNode {
  return (
    <span
      className="tag tag-synthetic"
      title="This trace was written by stepscope’s synthesiser from a schedule of steps, copies, syncs and kernels; no machine recorded it."
    >
      synthetic
      <span className="visually-hidden"> (written by stepscope’s synthesiser, not recorded)</span>
    </span>
  );
}
