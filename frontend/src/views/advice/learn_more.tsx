import { lazy, type ReactNode, Suspense, useState } from 'react';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';

const RulePage = lazy(() => import('./rule_page'));

interface Props {
  readonly rule: string;
}

/** The page of the rule, fetched when it is opened. */
export function LearnMore({ rule }: Props): ReactNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="inline">
        <Icon name="chevron" size={14} /> Learn more about this check
      </summary>
      {isOpen && (
        <Suspense fallback={<Skeleton />}>
          <RulePage rule={rule} />
        </Suspense>
      )}
    </details>
  );
}
