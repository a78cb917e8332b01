/** Exact details of slices that the pointer rests on, asked for once each. */
import type { SliceDetails } from './wire';

const REST_MS = 90;
const MOST_HELD = 500;

export class DetailsCache {
  private readonly held = new Map<number, SliceDetails>();
  private wanted: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | null = null;

  constructor(
    private readonly fetchDetails: (event: number, signal: AbortSignal) => Promise<SliceDetails>,
    private readonly changed: () => void,
  ) {}

  /** What is known of an event; asked for where the pointer stays on it. */
  find = (event: number): SliceDetails | undefined => {
    const found = this.held.get(event);
    if (!found && this.wanted !== event) this.want(event);
    return found;
  };

  private want(event: number): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.wanted = event;
    this.timer = setTimeout(() => void this.ask(event), REST_MS);
  }

  private async ask(event: number): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    try {
      this.held.set(event, await this.fetchDetails(event, abort.signal));
      const [oldest] = this.held.keys();
      if (this.held.size > MOST_HELD && oldest !== undefined) this.held.delete(oldest);
      this.changed();
    } catch {
      // The tooltip then says what the screen shows.
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.wanted = null;
  }
}
