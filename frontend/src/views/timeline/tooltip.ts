/** The tooltip at the pointer. It changes with every frame, so it writes text nodes without React. */
import { count, duration, quantity, share } from '../../core/format';
import { shortName } from '../../core/names';
import { counterAt, unitOf } from './draw_counter';
import type { Picked } from './pick';
import type { CounterStore } from './stores';
import { NO_EVENT } from './tiles';
import type { Viewer } from './viewer';
import type { SliceCategory, SliceDetails } from './wire';

interface Legend {
  readonly names: readonly string[];
  readonly categories: readonly SliceCategory[];
}

interface Lines {
  readonly title: string;
  readonly facts: readonly string[];
}

/** The tooltip of a slice. Details are exact; without them a duration is as exact as the screen. */
export function tooltipLines(
  picked: Picked,
  legend: Legend,
  details: SliceDetails | undefined,
): Lines {
  const name = legend.names[picked.name] ?? '';
  const category = legend.categories[picked.category]?.label ?? '';
  if (picked.count > 1) {
    const short = shortName(name);
    const longest = details ? `${short} ${duration(details.duration_ns)}` : short;
    return {
      title: `${count(picked.count)} events, busy ${share(picked.busy)}`,
      facts: [`longest ${longest}`, `${category} · too short to draw individually: zoom in`],
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

  private lines(
    legend: Legend,
    details: (event: number) => SliceDetails | undefined,
  ): Lines | null {
    const { hover, pointer } = this.viewer;
    const stub = this.viewer.stubAt();
    if (stub) return { title: stub.link.name, facts: stub.facts };
    if (hover) {
      const exact = hover.event === NO_EVENT ? undefined : details(hover.event);
      return tooltipLines(hover, legend, exact);
    }
    const hit = pointer && this.viewer.laneAt(pointer.y);
    if (!(pointer && hit) || hit.lane.kind !== 'counter') return null;
    const { track } = hit.lane;
    const values = counterAt(this.viewer, this.counters, track.id, this.viewer.timeAt(pointer.x));
    if (!values) return null;
    const unit = unitOf(track.unit);
    const range =
      values.min === values.max
        ? []
        : [`from ${quantity(values.min, unit)} to ${quantity(values.max, unit)}`];
    return { title: `${track.label}: ${quantity(values.last, unit)}`, facts: range };
  }

  update(legend: Legend, details: (event: number) => SliceDetails | undefined): void {
    const lines = this.lines(legend, details);
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
