/** A factor: a slider up to twice the recorded time, and a number. */
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { factorOf, factorWords, MOST_FACTOR } from './changes';

const PAUSE_MS = 80;
const MOST_ON_SLIDER = 2;
const STEP = 0.05;

interface Draft {
  readonly text: string;
  /** The factor that the text replaces; with another one, the draft is out of date. */
  readonly replaces: number;
}

interface Edited {
  readonly text: string;
  readonly edit: (text: string) => void;
  readonly end: () => void;
}

/** The text of a factor while it is edited; passed on after a pause. */
function useDraft(value: number, onChange: (factor: number) => void): Edited {
  const [draft, setDraft] = useState<Draft | null>(null);
  const latest = useRef(onChange);
  latest.current = onChange;
  const typed = draft && factorOf(draft.text);
  const isCurrent = draft !== null && (draft.replaces === value || typed === value);
  const pending = isCurrent && typed !== null && typed !== value ? typed : null;
  useEffect(() => {
    if (pending === null) return undefined;
    const timer = setTimeout(() => {
      setDraft((now) => now && { ...now, replaces: pending });
      latest.current(pending);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [pending]);
  return {
    text: isCurrent ? draft.text : String(value),
    edit: (text) => setDraft({ text, replaces: value }),
    end: () => {
      if (pending === null) setDraft(null);
    },
  };
}

interface Props {
  readonly label: string;
  readonly value: number;
  readonly onChange: (factor: number) => void;
  /** Why it has no effect. */
  readonly disabledBecause?: string | undefined;
}

export function Factor({ label, value, onChange, disabledBecause }: Props): ReactNode {
  const id = useId();
  const { text, edit, end } = useDraft(value, onChange);
  const factor = factorOf(text) ?? value;
  const isDisabled = disabledBecause !== undefined && value === 1;
  const isInvalid = factorOf(text) === null;
  return (
    <div className="whatif-factor">
      <label htmlFor={id}>{label}</label>
      <span className="note">
        {isInvalid ? (
          <span className="bad">a number from 0 to {MOST_FACTOR}</span>
        ) : (
          (disabledBecause ?? factorWords(factor))
        )}
      </span>
      <input
        id={id}
        type="range"
        min={0}
        max={MOST_ON_SLIDER}
        step={STEP}
        value={Math.min(factor, MOST_ON_SLIDER)}
        disabled={isDisabled}
        aria-valuetext={factorWords(factor)}
        onChange={(event) => edit(event.target.value)}
      />
      <span className="whatif-number">
        <span aria-hidden="true">×</span>
        <input
          type="number"
          min={0}
          max={MOST_FACTOR}
          step={STEP}
          aria-label={`${label}: factor`}
          aria-invalid={isInvalid}
          disabled={isDisabled}
          value={text}
          onChange={(event) => edit(event.target.value)}
          onBlur={end}
        />
      </span>
    </div>
  );
}
