import type { ReactNode } from 'react';
import type { Comparability as Message } from '../../api/types.gen';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';

/** The differences between the sides that change the step by themselves. */
export function Comparability({ of }: { readonly of: Message }): ReactNode {
  if (of.level === 'comparable') return null;
  const isDecisive = of.level === 'not-comparable';
  const [title, tone] = isDecisive
    ? (['Not comparable', 'bad'] as const)
    : (['Comparable with care', 'warn'] as const);
  return (
    <section className={`framed compare-doubts notice-${tone}`} aria-label={title}>
      <h2 className="flex">
        <Icon name="warning" tone={tone} /> {title}
      </h2>
      <ul className="bullets">
        {[...of.reasons, ...of.cautions].map((text) => (
          <li key={text}>
            <Prose text={text} />
          </li>
        ))}
      </ul>
      {isDecisive && (
        <p className="muted">Changes are shown without a judgement as better or worse.</p>
      )}
    </section>
  );
}
