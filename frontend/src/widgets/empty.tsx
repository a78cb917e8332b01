import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon';
import './empty.css';

interface Props {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  readonly tone?: 'plain' | 'good' | 'bad';
}

/** A placeholder: what is missing, the reason, and what to do. */
export function Empty({ icon, title, children, tone = 'plain' }: Props): ReactNode {
  return (
    <section className={`empty framed empty-${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <span className={`round-icon ${tone === 'plain' ? 'muted' : tone}`}>
        <Icon name={icon} size={22} />
      </span>
      <div className="empty-body grow">
        <h2>{title}</h2>
        {children}
      </div>
    </section>
  );
}
