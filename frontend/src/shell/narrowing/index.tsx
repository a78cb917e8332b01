import { lazy, type ReactNode, Suspense, useRef, useState } from 'react';
import { useNarrowing, useOverview } from '../../api/queries';
import type { Span, StepRow } from '../../api/types.gen';
import { duration } from '../../core/format';
import { stepsOfTime } from '../../core/step_choice';
import type { PageLocation } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { Button } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { usePressOutside } from '../../widgets/press_outside';
import './narrowing.css';

const StepList = lazy(() => import('./step_list'));

interface Words {
  readonly main: string;
  readonly note: string;
}

/** The filter in a few words. */
function wordsOf({ step, time }: PageLocation, steps: readonly StepRow[] | undefined): Words {
  if (time) {
    const note = duration(time.endNs - time.startNs);
    const match = steps && stepsOfTime(steps, time);
    if (match) return { main: `Steps ${match[0]}–${match[1]}`, note };
    return { main: `${duration(time.startNs)} – ${duration(time.endNs)}`, note };
  }
  if (step === null) return { main: 'Whole trace', note: '' };
  const match = steps?.find((candidate) => candidate.number === step);
  if (match) return { main: `Step ${step}`, note: duration(match.duration_ns) };
  return { main: `Step ${step}`, note: steps ? 'not in this trace' : '' };
}

interface SideProps {
  readonly label: string;
  readonly keys: string;
  readonly icon: 'chevron' | 'close';
  readonly onClick: () => void;
}

function Side({ label, keys, icon, onClick }: SideProps): ReactNode {
  return (
    <Button
      quiet
      small
      className="narrow-side"
      aria-label={label}
      title={`${label} (${keys})`}
      onClick={onClick}
    >
      <Icon name={icon} size={14} />
    </Button>
  );
}

interface Props {
  readonly span: Span;
  readonly step: (by: -1 | 0 | 1) => void;
}

/** The step or time that all views are filtered to, with its controls. */
export function NarrowChip({ span, step }: Props): ReactNode {
  const { location } = useNavigation();
  const [isOpen, setOpen] = useState(false);
  const close = useRef(() => setOpen(false)).current;
  const box = useRef<HTMLDivElement>(null);
  usePressOutside(box, close, isOpen);
  const button = useRef<HTMLButtonElement>(null);
  const isNarrowed = location.step !== null || location.time !== null;
  const isReady = span.state === 'ready';
  const overview = useOverview(span.trace, { enabled: isReady && (isNarrowed || isOpen) });
  const narrowing = useNarrowing(span.trace);
  const { main, note } = wordsOf(location, overview.data?.steps);
  if (!isReady) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: no set of form fields
    <div
      className={isNarrowed ? 'narrow framed chip-on' : 'narrow framed'}
      ref={box}
      role="group"
      aria-label="Filter of all views"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        event.preventDefault();
        close();
        button.current?.focus();
      }}
    >
      {isNarrowed && (
        <Side label="Previous step" keys="," icon="chevron" onClick={() => step(-1)} />
      )}
      <Button
        ref={button}
        quiet
        className="narrow-button"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        title={
          isNarrowed
            ? `All views that support it are filtered to ${narrowing?.label ?? main}`
            : 'Filter all views to a step or a range of steps'
        }
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="filter" size={14} />
        <span className="narrow-main">{main}</span>
        {note !== '' && <span className="narrow-note muted">{note}</span>}
        <Icon name="down" size={14} />
      </Button>
      {isNarrowed && (
        <>
          <Side label="Next step" keys="." icon="chevron" onClick={() => step(1)} />
          <Side label="Show the whole trace" keys="g 0" icon="close" onClick={() => step(0)} />
        </>
      )}
      <span className="visually-hidden" role="status">
        {isNarrowed ? `Filtered to ${main}` : ''}
      </span>
      {isOpen && (
        <div className="narrow-popup popup" role="dialog" aria-label="Filter all views">
          <Suspense fallback={<Skeleton rows={3} />}>
            <StepList query={overview} close={close} />
          </Suspense>
        </div>
      )}
    </div>
  );
}
