import { useEffect, useRef, useState } from 'react';

interface Typed {
  readonly typed: string;
  readonly type: (text: string) => void;
  /** Passes the text on at once. */
  readonly flush: () => void;
}

const PAUSE_MS = 150;

/** Text of an input, which follows `value` and is passed on once the user pauses. */
export function useTyped(
  value: string,
  onChange: (text: string) => void,
  pauseMs = PAUSE_MS,
): Typed {
  const [typed, setTyped] = useState(value);
  const written = useRef(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  const pass = useRef((text: string): void => {
    if (text === written.current) return;
    written.current = text;
    latest.current(text);
  }).current;
  useEffect(() => {
    if (value === written.current) return;
    written.current = value;
    setTyped(value); // the URL was changed by a link or Back
  }, [value]);
  useEffect(() => {
    const timer = setTimeout(() => pass(typed), pauseMs);
    return () => clearTimeout(timer);
  }, [typed, pass, pauseMs]);
  return { typed, type: setTyped, flush: () => pass(typed) };
}
