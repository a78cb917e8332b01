import type { ReactNode } from 'react';
import { useNavigation } from '../state/navigation';
import type { Selection } from '../state/selection';
import { views } from '../views';
import type { View } from '../views/view';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';

interface Props {
  readonly selection: Selection | null;
}

function Mark({ view, selection }: Props & { readonly view: View }): ReactNode {
  const severity = selection && view.mark?.(selection);
  if (!severity) return null;
  return (
    <span className={`rail-mark rail-mark-${severity}`}>
      <span className="visually-hidden">something was found</span>
    </span>
  );
}

/** The views, one click each. */
export function Rail({ selection }: Props): ReactNode {
  const { location } = useNavigation();
  return (
    <nav className="rail" aria-label="Views">
      {views.map((view) => (
        <Goto
          key={view.id}
          to={{ view: view.id }}
          className="rail-item"
          current={view.id === location.view}
          title={`${view.title} (g ${view.key})`}
        >
          <Icon name={view.icon} size={19} />
          <span>{view.title}</span>
          <Mark view={view} selection={selection} />
        </Goto>
      ))}
    </nav>
  );
}
