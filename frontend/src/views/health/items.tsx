import type { ReactNode } from 'react';
import type { HealthItem, Outcome } from '../../api/types.gen';
import { bytes, count, share } from '../../core/format';
import { isCode, sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Prose } from '../../widgets/prose';
import { Affects } from './affects';
import { Examples } from './examples';

interface ItemProps {
  readonly item: HealthItem;
  readonly outcomes: readonly Outcome[];
}

/** How many of how many. */
function Amount({ item }: Pick<ItemProps, 'item'>): ReactNode {
  const { count: found, of_count: all, lost_bytes, message } = item;
  const isSaid = found === 1 || message.includes(count(found));
  return (
    <span className="item-amount">
      {all !== null && all > 0 && <strong>{share(found / all)}</strong>}
      {all !== null && `${count(found)} of ${count(all)}`}
      {all === null && !isSaid && `${count(found)} times`}
      {lost_bytes > 0 && <span>{bytes(lost_bytes)} lost</span>}
    </span>
  );
}

function Item({ item, outcomes }: ItemProps): ReactNode {
  const { severity, message, action, remedy, kind } = item;
  return (
    <li className="item">
      <SeverityBadge severity={severity} />
      <div className="item-words">
        <h3>
          <Prose text={sentence(message)} />
        </h3>
        {action !== '' && (
          <p>
            <span className="muted">What was done:</span> <Prose text={action} />.
          </p>
        )}
        {remedy !== '' && (
          <p>
            <span className="muted">What to do:</span> <Prose text={asProse(remedy)} />
          </p>
        )}
        <Affects item={item} outcomes={outcomes} />
      </div>
      <Amount item={item} />
      <Examples examples={item.examples} of={kind} />
    </li>
  );
}

const asProse = (remedy: string): string => (isCode(remedy) ? `\`${remedy}\`` : sentence(remedy));

interface Props {
  readonly title: string;
  readonly note: string;
  readonly items: readonly HealthItem[];
  readonly outcomes: readonly Outcome[];
}

/** What was found of one nature; nothing where nothing was. */
export function Items({ title, note, items, outcomes }: Props): ReactNode {
  if (items.length === 0) return null;
  const id = `health-${title.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <section className="card items" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{title}</h2>
        {note !== '' && <p>{note}</p>}
      </div>
      <ul>
        {items.map((item) => (
          <Item key={item.kind + item.message} item={item} outcomes={outcomes} />
        ))}
      </ul>
    </section>
  );
}
