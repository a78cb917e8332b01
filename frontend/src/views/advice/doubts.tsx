import type { ReactNode } from 'react';
import { sentence } from '../../core/sentence';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';

/** Why an answer is not to be relied upon: what is wrong with that which it rests on. */
export function Doubts({ doubts }: { readonly doubts: readonly string[] }): ReactNode {
  if (doubts.length === 0) return null;
  return (
    <p className="doubts">
      <Icon name="warning" size={15} />
      <span>
        <strong>Doubtful.</strong> It rests on damaged parts of the recording:{' '}
        <Prose text={doubts.map(sentence).join(' ')} /> <Goto to={{ view: 'health' }}>Health</Goto>
      </span>
    </p>
  );
}
