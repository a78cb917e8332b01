import type { ReactNode } from 'react';
import { useAdvice } from '../api/queries';
import { against, reportOf } from '../core/health';
import { sentence } from '../core/sentence';
import type { Selection } from '../state/selection';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';
import { Prose } from '../widgets/prose';

interface Props {
  readonly selection: Selection;
  /** Names in `HealthItem.affects`. */
  readonly dependsOn: readonly string[];
}

/** Warns about figures that depend on damaged parts of the trace. */
export function Caution({ selection, dependsOn }: Props): ReactNode {
  const { data } = useAdvice(selection.run, selection.span.trace);
  const health = (data && reportOf(data, selection.span.trace)?.health) ?? [];
  const concerns = against(health, dependsOn);
  const [worst] = concerns;
  if (!worst) return null;
  const isWithheld = worst.effect === 'withheld';
  const tone = isWithheld ? 'bad' : 'warn';
  return (
    <aside className={`notice framed flex notice-${tone}`} aria-label="Caution">
      <Icon name={isWithheld ? 'critical' : 'warning'} tone={tone} />
      <p>
        <strong>{isWithheld ? 'Unusable.' : 'Unreliable.'}</strong>{' '}
        <Prose text={concerns.map((item) => sentence(item.message)).join(' ')} />{' '}
        <Goto to={{ view: 'health' }}>Health of this file</Goto>
      </p>
    </aside>
  );
}
