/** Questions of which only the last counts: an older answer is never taken for a newer one. */
import { useEffect, useState } from 'react';

export class OneQuestion {
  private last: AbortController | null = null;

  /** Begins a question; the one before is given up. */
  begin(): AbortSignal {
    this.giveUp();
    this.last = new AbortController();
    return this.last.signal;
  }

  /** Nobody waits for the answer any more. */
  giveUp(): void {
    this.last?.abort();
    this.last = null;
  }
}

/** One for as long as the component is on the page; what is still asked then is given up. */
export function useOneQuestion(): OneQuestion {
  const [question] = useState(() => new OneQuestion());
  useEffect(() => () => question.giveUp(), [question]);
  return question;
}
