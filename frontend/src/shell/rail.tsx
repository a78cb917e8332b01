import type { ReactNode } from 'react';
import { useNavigation } from '../state/navigation';
import { views } from '../views';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';

/** The views, one click each. */
export function Rail(): ReactNode {
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
        </Goto>
      ))}
    </nav>
  );
}
