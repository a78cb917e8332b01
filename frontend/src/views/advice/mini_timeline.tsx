import { useQueries } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { api } from '../../api/client';
import { useTraceQuery } from '../../api/queries';
import type {
  EventReference,
  Timeline,
  TimelineHit,
  TimelineHits,
  TimelineTrack,
} from '../../api/types.gen';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { colourId } from '../../core/colour';
import { duration, instant, plural } from '../../core/format';
import { shortName } from '../../core/names';
import { timelineLocation } from '../../state/timeline_location';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

const ROW_PX = 17;
const LABEL_PX = 104;
const GAP_PX = 6;
const TICK_PX = 16;
const MOST_ROWS = 3;
const MOST_TRACKS = 4;
const MOST_SLICES = 1500;
const LEAST_AROUND_NS = 50_000;
const TEXT_FROM_PX = 24;
const FONT_PX = 11;

interface Range {
  readonly startNs: number;
  readonly endNs: number;
}

/** The event with its own duration before and after it. */
export function rangeAround(event: EventReference): Range {
  const around = Math.max(LEAST_AROUND_NS, event.duration_ns);
  return {
    startNs: Math.max(0, event.start_ns - around),
    endNs: event.start_ns + event.duration_ns + around,
  };
}

const isDrawn = (track: TimelineTrack): boolean =>
  track.kind === 'stream' || track.kind === 'idle' || track.kind === 'thread';

/** The most useful tracks: that of the event, the busiest stream, idle causes, the busiest thread. */
export function shownTracks(
  timeline: Timeline,
  eventTrack: number | null,
): readonly TimelineTrack[] {
  const weight = (track: TimelineTrack): number =>
    track.id === eventTrack ? Number.POSITIVE_INFINITY : (track.busy_ns ?? 0);
  const of = (kind: TimelineTrack['kind'], most: number): TimelineTrack[] =>
    timeline.tracks
      .filter((track) => track.kind === kind)
      .sort((a, b) => weight(b) - weight(a))
      .slice(0, most);
  const busiest = [...of('stream', 1), ...of('idle', 1), ...of('thread', 1)];
  const eventOwnTrack = timeline.tracks.find((track) => track.id === eventTrack && isDrawn(track));
  const all =
    eventOwnTrack && !busiest.includes(eventOwnTrack) ? [...busiest, eventOwnTrack] : busiest;
  return all.sort((a, b) => a.order - b.order).slice(0, MOST_TRACKS);
}

interface Lane {
  readonly track: TimelineTrack;
  readonly label: string;
  readonly hits: readonly TimelineHit[];
  readonly rows: number;
  /** Later slices that the response leaves out. */
  readonly leftOut: number;
}

function laneOf(timeline: Timeline, track: TimelineTrack, response: TimelineHits): Lane {
  const hits = response.hits.filter((hit) => hit.row < MOST_ROWS);
  const parent = timeline.tracks.find((other) => other.id === track.parent);
  return {
    track,
    label: parent && track.kind !== 'thread' ? `${parent.label} ${track.label}` : track.label,
    hits,
    rows: Math.max(1, ...hits.map((hit) => hit.row + 1)),
    leftOut: response.total - response.hits.length,
  };
}

interface Picture {
  readonly lanes: readonly Lane[];
  readonly range: Range;
  readonly event: EventReference;
}

const heightOf = (lanes: readonly Lane[]): number =>
  lanes.reduce((sum, lane) => sum + lane.rows * ROW_PX + GAP_PX, TICK_PX);

type ToPx = (ns: number) => number;

function drawSlice(frame: Frame, hit: TimelineHit, y: number, xOf: ToPx): void {
  const { context, theme, tokens } = frame;
  const left = Math.max(LABEL_PX, xOf(hit.start_ns));
  const right = Math.min(frame.widthPx, xOf(hit.start_ns + hit.duration_ns));
  const width = Math.max(1, right - left);
  if (right < LABEL_PX || left > frame.widthPx) return;
  context.fillStyle = fillOf(colourId(hit.category), hit.name, theme);
  context.fillRect(left, y, width > 3 ? width - 0.5 : width, ROW_PX - 2);
  if (width < TEXT_FROM_PX) return;
  const font = `${FONT_PX}px ${tokens.sans}`;
  context.font = font;
  context.fillStyle = INK[theme];
  context.fillText(fitterOf(context, font).fit(shortName(hit.name), width - 8), left + 4, y + 11);
}

function drawLane(frame: Frame, lane: Lane, top: number, xOf: ToPx): void {
  const { context, tokens, widthPx } = frame;
  context.fillStyle = tokens.sunken;
  context.fillRect(LABEL_PX, top, widthPx - LABEL_PX, lane.rows * ROW_PX);
  for (const hit of lane.hits) drawSlice(frame, hit, top + hit.row * ROW_PX + 1, xOf);
  const font = `${FONT_PX}px ${tokens.sans}`;
  context.font = font;
  context.fillStyle = tokens.muted;
  context.fillText(fitterOf(context, font).fit(lane.label, LABEL_PX - 10), 0, top + 12);
}

function draw(frame: Frame, { lanes, range, event }: Picture): void {
  const { context, widthPx, heightPx, tokens } = frame;
  const scale = (widthPx - LABEL_PX) / (range.endNs - range.startNs);
  const xOf: ToPx = (ns) => LABEL_PX + (ns - range.startNs) * scale;
  context.clearRect(0, 0, widthPx, heightPx);
  const [from, to] = [xOf(event.start_ns), xOf(event.start_ns + event.duration_ns)];
  context.fillStyle = tokens.hover;
  context.fillRect(from, 0, Math.max(1, to - from), heightPx);
  let top = TICK_PX;
  for (const lane of lanes) {
    drawLane(frame, lane, top, xOf);
    top += lane.rows * ROW_PX + GAP_PX;
  }
  context.strokeStyle = tokens.accent;
  context.lineWidth = 1.5;
  context.strokeRect(from, 0.75, Math.max(1, to - from), heightPx - 1.5);
  context.font = `${FONT_PX}px ${tokens.sans}`;
  context.fillStyle = tokens.text;
  const label = duration(event.duration_ns);
  const wide = context.measureText(label).width;
  context.fillText(label, Math.min(widthPx - wide - 4, Math.max(LABEL_PX, from + 4)), 11);
}

/** The picture as text, for screen readers. */
function describe({ lanes, range }: Picture): string {
  const parts = lanes.map((lane) => {
    const names = [...new Set(lane.hits.map((hit) => shortName(hit.name)))].slice(0, 4);
    const more = lane.hits.length > 0 ? `: ${names.join(', ')}` : '';
    return `${lane.label} has ${plural(lane.hits.length + lane.leftOut, 'event')}${more}`;
  });
  return `From ${instant(range.startNs)} to ${instant(range.endNs)}: ${parts.join('; ')}.`;
}

function Picture(picture: Picture): ReactNode {
  const { lanes, event } = picture;
  const surface = useSurface((frame) => {
    draw(frame, picture);
    return false;
  });
  const leftOut = lanes.reduce((sum, lane) => sum + lane.leftOut, 0);
  return (
    <>
      <Goto
        to={timelineLocation(event.start_ns, event.start_ns + event.duration_ns, event.event)}
        title="Show in the timeline"
        className="mini-timeline"
      >
        <canvas
          ref={surface.canvas}
          style={{ height: heightOf(lanes) }}
          role="img"
          aria-label={describe(picture)}
        />
      </Goto>
      {leftOut > 0 && (
        <p className="muted">{plural(leftOut, 'later event')} of this range not drawn.</p>
      )}
    </>
  );
}

interface LanesProps {
  readonly trace: string;
  readonly timeline: Timeline;
  readonly event: EventReference;
  readonly eventTrack: number | null;
}

function Lanes({ trace, timeline, event, eventTrack }: LanesProps): ReactNode {
  const range = useMemo(() => rangeAround(event), [event]);
  const tracks = useMemo(() => shownTracks(timeline, eventTrack), [timeline, eventTrack]);
  const { startNs: start_ns, endNs: end_ns } = range;
  const responses = useQueries({
    queries: tracks.map((track) => ({
      queryKey: ['trace', trace, 'timeline/slices', track.id, start_ns, end_ns],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.get(
          'traces/{trace}/timeline/slices',
          { trace, track: track.id, start_ns, end_ns, limit: MOST_SLICES },
          signal,
        ),
    })),
    combine: (results) => results.map((result) => result.data),
  });
  const lanes = useMemo(
    () =>
      tracks.flatMap((track, at) => {
        const response = responses[at];
        return response ? [laneOf(timeline, track, response)] : [];
      }),
    [tracks, responses, timeline],
  );
  if (lanes.length < tracks.length || lanes.length === 0) return null;
  return <Picture lanes={lanes} range={range} event={event} />;
}

interface Props {
  readonly trace: string;
  readonly event: EventReference;
}

/** The tracks around the worst event; a click opens the timeline. */
export function MiniTimeline({ trace, event }: Props): ReactNode {
  const timeline = useTraceQuery(trace, 'timeline/tracks');
  const slice = useTraceQuery(
    trace,
    'timeline/slices/{event}',
    { event: event.event ?? 0 },
    { enabled: event.event !== null },
  );
  const isResolved = event.event === null || slice.data !== undefined || slice.isError;
  if (!timeline.data || !isResolved) return null; // the table of events has the same
  return (
    <section>
      <h4>
        Around the worst event
        <span className="mini-note inline">
          {shortName(event.name)} at {instant(event.start_ns)}
          {event.event !== null && `, ${event.track}`}
          <Icon name="timeline" size={13} />
        </span>
      </h4>
      <Lanes
        trace={trace}
        timeline={timeline.data}
        event={event}
        eventTrack={slice.data?.track ?? null}
      />
    </section>
  );
}
