import { type ReactNode, useId } from 'react';
import type { Outcome } from '../../api/types.gen';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly outcome: Outcome;
  /** What colours its edge: a severity, or that others count its time. */
  readonly look: string;
  readonly badge: ReactNode;
  readonly meta: ReactNode;
  readonly saving: ReactNode;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  /** Drawn only while it is open. */
  readonly children: ReactNode;
}

/** A finding in a list, of a recording or of a job: a head that says what and how much, and opens the rest. */
export function FindingFrame(props: Props): ReactNode {
  const { outcome, look, badge, meta, saving, isOpen, onToggle, children } = props;
  const id = useId();
  return (
    <li data-rule={outcome.rule} className={`finding finding-${look}`}>
      <h3>
        <button
          type="button"
          className="finding-head"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => onToggle(!isOpen)}
        >
          {badge}
          <span className="finding-title">
            {outcome.title}
            {!isOpen && <span className="finding-glimpse">{outcome.message}</span>}
          </span>
          <span className="finding-meta">{meta}</span>
          {saving}
          <span className="finding-chevron">
            <Icon name="chevron" size={18} />
          </span>
        </button>
      </h3>
      <div id={id} hidden={!isOpen}>
        {isOpen && children}
      </div>
    </li>
  );
}
