import type { ReactNode } from 'react';
import type { HealthItem } from '../api/types.gen';
import { Icon } from './icon';
import './badge.css';

export type Severity = HealthItem['severity'];

const WORDS: Record<Severity, string> = { critical: 'Critical', warning: 'Warning', info: 'Info' };

/** A severity as icon, text and colour. */
export function SeverityBadge({ severity }: { readonly severity: Severity }): ReactNode {
  return (
    <span className={`severity inline severity-${severity}`}>
      <Icon name={severity} size={15} />
      {WORDS[severity]}
    </span>
  );
}

export function SyntheticBadge(): ReactNode {
  return (
    <span
      className="tag tag-synthetic"
      title="stepscope’s synthesiser wrote this trace from a schedule of steps, copies, syncs and kernels; it is not a recording."
    >
      synthetic
      <span className="visually-hidden"> (written by stepscope’s synthesiser, not recorded)</span>
    </span>
  );
}
