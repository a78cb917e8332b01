import type { ReactNode } from 'react';
import type { HealthItem } from '../api/types.gen';
import { plural } from '../core/format';
import { ofNature, worthOf } from '../core/health';
import { sentence } from '../core/sentence';
import { SeverityBadge } from './badge';
import { Goto } from './goto';
import { Icon } from './icon';
import { Prose } from './prose';
import './health.css';

const MOST_ITEMS = 4;

const MOST_NAMED = 2;

/** What the items that are not listed say, or how many there are. */
function rest(items: readonly HealthItem[]): string {
  if (items.length <= MOST_NAMED) return items.map(({ message }) => sentence(message)).join(' ');
  const parts = [
    [ofNature(items, 'damage').length, 'kind of damage', 'kinds of damage'],
    [ofNature(items, 'gap').length, 'thing not recorded', 'things not recorded'],
    [ofNature(items, 'note').length, 'note', 'notes'],
  ] as const;
  const counts = parts
    .filter(([size]) => size > 0)
    .map(([size, one, many]) => plural(size, one, many));
  return `${counts.join(', ')}.`;
}

/** The health of a trace file in a few lines, with a link to the view. */
export function HealthSummary({ items }: { readonly items: readonly HealthItem[] }): ReactNode {
  const serious = items.filter((item) => item.severity !== 'info').slice(0, MOST_ITEMS);
  const others = rest(items.filter((item) => !serious.includes(item)));
  return (
    <section className="card health" aria-labelledby="health">
      <div className="card-head">
        <h2 id="health">{worthOf(items).title}</h2>
        <Goto to={{ view: 'health' }} className="all">
          Health <Icon name="arrow" size={13} />
        </Goto>
      </div>
      {serious.length > 0 && (
        <ul>
          {serious.map((item) => (
            <li key={item.kind + item.message}>
              <SeverityBadge severity={item.severity} />
              <p>
                <Prose text={sentence(item.message)} />{' '}
                <span className="muted">
                  <Prose text={sentence(item.action)} />
                </span>
              </p>
            </li>
          ))}
        </ul>
      )}
      {others !== '' && (
        <p className="muted">
          <Prose text={others} />
        </p>
      )}
    </section>
  );
}
