import type { MouseEvent, ReactNode } from 'react';
import type { Link } from '../api/types.gen';
import { type Patch, useNavigation } from '../state/navigation';
import { timelinePlace } from '../state/timeline_place';

/** Where a piece of evidence is shown. */
export function placeOf(link: Link): Patch {
  const { start_ns: startNs, end_ns: endNs } = link;
  if (link.view === 'timeline' && typeof startNs === 'number' && typeof endNs === 'number') {
    return timelinePlace(startNs, endNs);
  }
  return {
    view: link.view,
    search: link.search ?? '',
    group: link.group ?? null,
    ...(link.step === null || link.step === undefined ? {} : { step: link.step }),
  };
}

interface Props {
  readonly to: Patch;
  readonly children: ReactNode;
  readonly className?: string;
  readonly title?: string;
  readonly current?: boolean;
}

const isPlainClick = (event: MouseEvent): boolean =>
  event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);

/** A real link to a place in the page: it opens here, or in another tab as any link does. */
export function Goto({ to, children, className, title, current = false }: Props): ReactNode {
  const { go, href } = useNavigation();
  return (
    <a
      href={href(to)}
      target="_top"
      className={className}
      title={title}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (!isPlainClick(event)) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
