import { type ReactNode, useState } from 'react';
import { useAdvice } from '../api/queries';
import type { WorkerReport } from '../api/types.gen';
import { reportOf } from '../core/health';
import { readChoice, writeChoice } from '../host/choice';
import { useNavigation } from '../state/navigation';
import type { Selection } from '../state/selection';
import { views } from '../views';
import type { View } from '../views/view';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';
import './rail.css';

const GROUPS = [
  { scope: 'trace', label: 'This trace' },
  { scope: 'run', label: 'All ranks of the run' },
  { scope: 'runs', label: 'All runs' },
] as const;

interface ItemProps {
  readonly view: View;
  readonly selection: Selection | null;
  readonly report: WorkerReport | undefined;
}

function Item({ view, selection, report }: ItemProps): ReactNode {
  const { location, backTo } = useNavigation();
  const severity = selection && view.mark?.(selection);
  const missing = (selection && view.missing?.(selection, report)) ?? null;
  const keys = `${view.title} (g ${view.key})`;
  return (
    <li>
      <Goto
        to={backTo(view.id)}
        className={missing === null ? 'rail-item option-row' : 'rail-item option-row rail-missing'}
        current={view.id === location.view}
        title={missing === null ? keys : `${keys}\n${missing}`}
      >
        <Icon name={view.icon} size={19} />
        <span className="rail-title">{view.title}</span>
        {severity && (
          <span className={`rail-mark severity-${severity}`}>
            <span className="visually-hidden">has findings</span>
          </span>
        )}
        {missing !== null && <span className="visually-hidden">no data: {missing}</span>}
      </Goto>
    </li>
  );
}

function Items({ selection, report }: Omit<ItemProps, 'view'>): ReactNode {
  return GROUPS.map(({ scope, label }) => {
    const items = views.filter((view) => (view.scope ?? 'trace') === scope);
    if (items.length === 0) return null;
    return (
      <ul key={scope} aria-label={label} className="rail-group">
        {items.map((view) => (
          <Item key={view.id} view={view} selection={selection} report={report} />
        ))}
      </ul>
    );
  });
}

function ReportedItems({ selection }: { readonly selection: Selection }): ReactNode {
  const { data } = useAdvice(selection.run, selection.span.trace);
  return <Items selection={selection} report={data && reportOf(data, selection.span.trace)} />;
}

/** The list of views; views without data for this trace have the reason as a tooltip. */
export function Rail({ selection }: { readonly selection: Selection | null }): ReactNode {
  const [isSmall, setSmall] = useState(() => readChoice('rail') === 'small');
  const toggle = (): void => {
    writeChoice('rail', isSmall ? null : 'small');
    setSmall(!isSmall);
  };
  return (
    <nav className={isSmall ? 'rail column rail-small' : 'rail column'} aria-label="Views">
      {selection?.span.state === 'ready' ? (
        <ReportedItems selection={selection} />
      ) : (
        <Items selection={selection} report={undefined} />
      )}
      <button
        type="button"
        className="rail-toggle button quiet small square"
        aria-pressed={isSmall}
        aria-label="Icons only"
        title={isSmall ? 'Show the names of the views' : 'Show icons only'}
        onClick={toggle}
      >
        <Icon name="chevron" size={15} />
      </button>
    </nav>
  );
}
