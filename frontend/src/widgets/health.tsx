import type { ReactNode } from 'react';
import type { HealthItem } from '../api/types.gen';
import { count } from '../core/format';
import { sentence } from '../core/sentence';
import { SeverityBadge } from './badge';
import { Copy } from './copy';
import { Prose } from './prose';
import './health.css';

/** One line of code, as against a sentence. */
const isCode = (remedy: string): boolean => /[()=]/.test(remedy) && !/[.!?]$/.test(remedy.trim());

/** What a reader should know of the file itself: damage, too few steps, what was not recorded. */
export function Health({ items }: { readonly items: readonly HealthItem[] }): ReactNode {
  if (items.length === 0) return null;
  return (
    <section className="card health" aria-labelledby="health">
      <h2 id="health">Quality of this recording</h2>
      <ul>
        {items.map((item) => (
          <li key={item.kind + item.message}>
            <SeverityBadge severity={item.severity} />
            <p>
              <Prose text={sentence(item.message)} />
              {item.count > 1 && <span className="muted"> ({count(item.count)}×)</span>}
              {!isCode(item.remedy) && (
                <span className="muted">
                  {' '}
                  <Prose text={item.remedy} />
                </span>
              )}
            </p>
            {isCode(item.remedy) && (
              <span className="remedy">
                <code>{item.remedy}</code>
                <Copy text={item.remedy} quiet />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
