import type { ReactNode } from 'react';
import { useAdvice } from '../api/queries';
import type { HealthItem } from '../api/types.gen';
import { against, reportOf } from '../core/health';
import { sentence } from '../core/sentence';
import { dismiss, useDismissed } from '../host/dismissed';
import type { Selection } from '../state/selection';
import { CloseNotice } from '../widgets/close_notice';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';
import { Prose } from '../widgets/prose';

interface Props {
  readonly selection: Selection;
  /** Names in `HealthItem.affects`. */
  readonly dependsOn: readonly string[];
}

/** Warns about figures that depend on damaged parts of the trace, until the user closes the notice. */
export function Caution({ selection, dependsOn }: Props): ReactNode {
  const { data } = useAdvice(selection.run, selection.span.trace);
  const health = (data && reportOf(data, selection.span.trace)?.health) ?? [];
  const dismissed = useDismissed();
  const { trace, file_bytes } = selection.span;
  const keyOf = ({ message }: HealthItem): string => `${trace}\n${file_bytes}\n${message}`;
  const concerns = against(health, dependsOn).filter((item) => !dismissed.has(keyOf(item)));
  const [worst] = concerns;
  if (!worst) return null;
  const isWithheld = worst.effect === 'withheld';
  const tone = isWithheld ? 'bad' : 'warn';
  return (
    <aside className={`notice framed flex notice-${tone}`} aria-label="Caution">
      <Icon name={isWithheld ? 'critical' : 'warning'} tone={tone} />
      <p className="grow">
        <strong>{isWithheld ? 'Unusable.' : 'Unreliable.'}</strong>{' '}
        <Prose text={concerns.map((item) => sentence(item.message)).join(' ')} />{' '}
        <Goto to={{ view: 'health' }}>Health of this file</Goto>
      </p>
      <CloseNotice onClose={() => dismiss(concerns.map(keyOf))} />
    </aside>
  );
}
