import type { MouseEvent, ReactNode } from 'react';
import type { Link } from '../api/types.gen';
import { type Patch, useNavigation } from '../state/navigation';
import { timelineLocation } from '../state/timeline_location';

/** The location of a piece of evidence. */
export function locationOf(link: Link): Patch {
  const { start_ns: startNs, end_ns: endNs } = link;
  if (link.view === 'timeline' && typeof startNs === 'number' && typeof endNs === 'number') {
    return timelineLocation(startNs, endNs);
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

/** A link inside the page; modified clicks open it in another tab. */
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
