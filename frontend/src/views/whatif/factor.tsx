/** A factor: a slider up to twice the recorded time, and a number. */
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { factorOf, factorWords, MOST_FACTOR, MOST_WORKERS, wholeOf } from './changes';

const PAUSE_MS = 80;
const MOST_ON_SLIDER = 2;
const STEP = 0.05;

interface Draft {
  readonly text: string;
  /** The factor that the text replaces; with another one, the draft is out of date. */
  readonly replaces: number;
}

interface Edited {
  /** The value of the text; null if there is none. */
  readonly typed: number | null;
  readonly text: string;
  readonly edit: (text: string) => void;
  readonly end: () => void;
}

type Parse = (text: string) => number | null;

/** The text of a number while it is edited; passed on after a pause. */
function useDraft(value: number, parse: Parse, onChange: (value: number) => void): Edited {
  const [draft, setDraft] = useState<Draft | null>(null);
  const latest = useRef(onChange);
  latest.current = onChange;
  const typed = draft && parse(draft.text);
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
    typed: isCurrent ? typed : value,
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
  const { typed, text, edit, end } = useDraft(value, factorOf, onChange);
  const factor = typed ?? value;
  const isDisabled = disabledBecause !== undefined && value === 1;
  const isInvalid = typed === null;
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

interface CountProps {
  readonly label: string;
  /** Null: as recorded. */
  readonly value: number | null;
  readonly onChange: (value: number | null) => void;
}

const AS_RECORDED = 0;
const countOf: Parse = (text) => (text.trim() === '' ? AS_RECORDED : wholeOf(text));

/** A number of processes or cores; empty: as recorded. */
export function Count({ label, value, onChange }: CountProps): ReactNode {
  const id = useId();
  const { typed, text, edit, end } = useDraft(value ?? AS_RECORDED, countOf, (count) =>
    onChange(count === AS_RECORDED ? null : count),
  );
  return (
    <div className="whatif-count">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={1}
        max={MOST_WORKERS}
        step={1}
        placeholder="as recorded"
        aria-invalid={typed === null}
        value={text === String(AS_RECORDED) ? '' : text}
        onChange={(event) => edit(event.target.value)}
        onBlur={end}
      />
    </div>
  );
}
