/** What the pointer is on, beside the pointer. Written as text nodes straight into the page: it changes with every frame. */
import { count, duration, quantity, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { CounterStore } from './counters';
import { counterAt, unitOf } from './draw_counter';
import type { Picked } from './pick';
import { NO_EVENT } from './tiles';
import type { Viewer } from './viewer';
import type { SliceCategory, SliceDetails } from './wire';

interface Known {
  readonly names: readonly string[];
  readonly categories: readonly SliceCategory[];
}

interface Lines {
  readonly title: string;
  readonly facts: readonly string[];
}

/** What is told of a slice. Details are exact; without them a length is as exact as the screen. */
export function wordsOf(picked: Picked, known: Known, details: SliceDetails | undefined): Lines {
  const name = known.names[picked.name] ?? '';
  const category = known.categories[picked.category]?.label ?? '';
  if (picked.count > 1) {
    const short = shortName(name);
    const longest = details ? `${short} ${duration(details.duration_ns)}` : short;
    return {
      title: `${count(picked.count)} events, busy ${share(picked.busy)}`,
      facts: [`longest ${longest}`, `${category} · too short to be drawn one by one: come nearer`],
    };
  }
  const length = details
    ? duration(details.duration_ns)
    : `≈ ${duration(Math.max(1, Math.round(picked.endNs - picked.startNs)))}`;
  const self =
    details?.self_ns !== null && details?.self_ns !== undefined && details.child_count > 0
      ? [`self ${duration(details.self_ns)}`]
      : [];
  return { title: name, facts: [[length, ...self, category].join(' · ')] };
}

const OFFSET_PX = 14;

export class Tooltip {
  private shown = '';

  constructor(
    private readonly box: HTMLElement,
    private readonly viewer: Viewer,
    private readonly counters: CounterStore,
  ) {}

  private lines(known: Known, details: (event: number) => SliceDetails | undefined): Lines | null {
    const { hover, pointer } = this.viewer;
    if (hover) {
      const own = hover.event === NO_EVENT ? undefined : details(hover.event);
      return wordsOf(hover, known, own);
    }
    const seen = pointer && this.viewer.laneAt(pointer.y);
    if (!(pointer && seen) || seen.lane.kind !== 'counter') return null;
    const { track } = seen.lane;
    const found = counterAt(this.viewer, this.counters, track.id, this.viewer.timeAt(pointer.x));
    if (!found) return null;
    const unit = unitOf(track.unit);
    const range =
      found.min === found.max
        ? []
        : [`from ${quantity(found.min, unit)} to ${quantity(found.max, unit)}`];
    return { title: `${track.label}: ${quantity(found.last, unit)}`, facts: range };
  }

  update(known: Known, details: (event: number) => SliceDetails | undefined): void {
    const lines = this.lines(known, details);
    const { pointer } = this.viewer;
    if (!(lines && pointer)) {
      this.box.hidden = true;
      this.shown = '';
      return;
    }
    const text = [lines.title, ...lines.facts].join('\n');
    if (text !== this.shown) this.write(lines);
    this.shown = text;
    this.box.hidden = false;
    const { offsetWidth, offsetHeight } = this.box;
    const room = this.viewer;
    const x =
      pointer.x + OFFSET_PX + offsetWidth > room.widthPx
        ? Math.max(0, pointer.x - OFFSET_PX - offsetWidth)
        : pointer.x + OFFSET_PX;
    const y =
      pointer.y + OFFSET_PX + offsetHeight > room.heightPx
        ? Math.max(0, pointer.y - OFFSET_PX - offsetHeight)
        : pointer.y + OFFSET_PX;
    this.box.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }

  private write({ title, facts }: Lines): void {
    this.box.replaceChildren();
    const head = this.box.appendChild(document.createElement('strong'));
    head.textContent = title;
    for (const fact of facts) {
      this.box.appendChild(document.createElement('div')).textContent = fact;
    }
  }
}
