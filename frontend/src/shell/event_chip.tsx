import type { ReactNode } from 'react';
import { useTraceQuery } from '../api/queries';
import type { Span } from '../api/types.gen';
import { duration } from '../core/format';
import { shortName } from '../core/names';
import { useNavigation } from '../state/navigation';
import { Button } from '../widgets/button';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';

interface Props {
  readonly span: Span;
}

interface WordsProps extends Props {
  readonly event: number;
}

/** The name and duration of the event, or its number until they are loaded. */
function Words({ span, event }: WordsProps): ReactNode {
  const { data } = useTraceQuery(span.trace, 'timeline/slices/{event}', { event });
  const isIt = data?.event === event;
  return (
    <>
      <Icon name="pin" size={14} />
      <span className="ellipsis">{isIt ? shortName(data.name) : `Event ${event}`}</span>
      {isIt && <small>{duration(data.duration_ns)}</small>}
    </>
  );
}

/** The selected event: a link to the timeline, and a button to clear the selection. */
export function EventChip({ span }: Props): ReactNode {
  const { location, go } = useNavigation();
  const { event, view } = location;
  if (event === null || span.state !== 'ready') return null;
  const title = `The selected event, number ${event} in the file`;
  return (
    <span className="event-chip flex framed chip-on">
      {view === 'timeline' ? (
        <span className="event-chip-words flex" title={title}>
          <Words span={span} event={event} />
        </span>
      ) : (
        <Goto
          to={{ view: 'timeline' }}
          className="event-chip-words flex"
          title={`${title}: show it in the timeline`}
        >
          <Words span={span} event={event} />
        </Goto>
      )}
      <Button
        quiet
        small
        square
        aria-label="Clear selection"
        title="Clear selection (Esc)"
        onClick={() => go({ event: null }, 'replace')}
      >
        <Icon name="close" size={14} />
      </Button>
    </span>
  );
}
