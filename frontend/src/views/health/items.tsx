import type { ReactNode } from 'react';
import type { HealthItem, Outcome } from '../../api/types.gen';
import { bytes, count, share } from '../../core/format';
import { isCode, sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Card } from '../../widgets/card';
import { Prose } from '../../widgets/prose';
import { Affects } from './affects';
import { Examples } from './examples';

interface ItemProps {
  readonly item: HealthItem;
  readonly outcomes: readonly Outcome[];
}

/** The number of affected items. */
function Amount({ item }: Pick<ItemProps, 'item'>): ReactNode {
  const { count: parts, of_count: all, lost_bytes, message } = item;
  const isInMessage = parts === 1 || message.includes(count(parts));
  return (
    <span className="item-amount note">
      {all !== null && all > 0 && <strong>{share(parts / all)}</strong>}
      {all !== null && `${count(parts)} of ${count(all)}`}
      {all === null && !isInMessage && `${count(parts)} times`}
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
            <span className="muted">Handling:</span> <Prose text={action} />.
          </p>
        )}
        {remedy !== '' && (
          <p>
            <span className="muted">Remedy:</span> <Prose text={asProse(remedy)} />
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

/** The items of one nature. */
export function Items({ title, note, items, outcomes }: Props): ReactNode {
  if (items.length === 0) return null;
  return (
    <Card className="items" label={title} title={title} note={note === '' ? undefined : note}>
      <ul>
        {items.map((item) => (
          <Item key={item.kind + item.message} item={item} outcomes={outcomes} />
        ))}
      </ul>
    </Card>
  );
}
