import { useQueries } from '@tanstack/react-query';
import { type ReactNode, useCallback, useMemo } from 'react';
import { api, segment } from '../../api/client';
import { useTraceAnswer } from '../../api/queries';
import type {
  EventReference,
  Timeline,
  TimelineHit,
  TimelineHits,
  TimelineSlice,
  TimelineTrack,
} from '../../api/types.gen';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { colourId } from '../../core/colour';
import { duration, instant, plural } from '../../core/format';
import { shortName } from '../../core/names';
import { timelinePlace } from '../../state/timeline_place';
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

/** The event with as much time again before and behind it. */
export function rangeAround(event: EventReference): Range {
  const around = Math.max(LEAST_AROUND_NS, event.duration_ns);
  return {
    startNs: Math.max(0, event.start_ns - around),
    endNs: event.start_ns + event.duration_ns + around,
  };
}

const isDrawn = (track: TimelineTrack): boolean =>
  track.kind === 'stream' || track.kind === 'idle' || track.kind === 'thread';

/** The tracks that tell most: the event's own, the busiest streams, why a device idles, the busiest thread. */
export function chosenTracks(timeline: Timeline, own: number | null): readonly TimelineTrack[] {
  const weight = (track: TimelineTrack): number =>
    track.id === own ? Number.POSITIVE_INFINITY : (track.busy_ns ?? 0);
  const of = (kind: TimelineTrack['kind'], most: number): TimelineTrack[] =>
    timeline.tracks
      .filter((track) => track.kind === kind)
      .sort((a, b) => weight(b) - weight(a))
      .slice(0, most);
  const found = [...of('stream', 1), ...of('idle', 1), ...of('thread', 1)];
  const mine = timeline.tracks.find((track) => track.id === own && isDrawn(track));
  const all = mine && !found.includes(mine) ? [...found, mine] : found;
  return all.sort((a, b) => a.order - b.order).slice(0, MOST_TRACKS);
}

interface Lane {
  readonly track: TimelineTrack;
  readonly label: string;
  readonly hits: readonly TimelineHit[];
  readonly rows: number;
  /** Slices behind the last that was sent. */
  readonly leftOut: number;
}

function laneOf(timeline: Timeline, track: TimelineTrack, answer: TimelineHits): Lane {
  const hits = answer.hits.filter((hit) => hit.row < MOST_ROWS);
  const parent = timeline.tracks.find((each) => each.id === track.parent);
  return {
    track,
    label: parent && track.kind !== 'thread' ? `${parent.label} ${track.label}` : track.label,
    hits,
    rows: Math.max(1, ...hits.map((hit) => hit.row + 1)),
    leftOut: answer.total - answer.hits.length,
  };
}

interface Picture {
  readonly lanes: readonly Lane[];
  readonly range: Range;
  readonly event: EventReference;
}

const heightOf = (lanes: readonly Lane[]): number =>
  lanes.reduce((sum, lane) => sum + lane.rows * ROW_PX + GAP_PX, TICK_PX);

type Place = (ns: number) => number;

function drawSlice(frame: Frame, hit: TimelineHit, y: number, place: Place): void {
  const { context, theme, tokens } = frame;
  const left = Math.max(LABEL_PX, place(hit.start_ns));
  const right = Math.min(frame.widthPx, place(hit.start_ns + hit.duration_ns));
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

function drawLane(frame: Frame, lane: Lane, top: number, place: Place): void {
  const { context, tokens, widthPx } = frame;
  context.fillStyle = tokens.sunken;
  context.fillRect(LABEL_PX, top, widthPx - LABEL_PX, lane.rows * ROW_PX);
  for (const hit of lane.hits) drawSlice(frame, hit, top + hit.row * ROW_PX + 1, place);
  const font = `${FONT_PX}px ${tokens.sans}`;
  context.font = font;
  context.fillStyle = tokens.muted;
  context.fillText(fitterOf(context, font).fit(lane.label, LABEL_PX - 10), 0, top + 12);
}

function draw(frame: Frame, { lanes, range, event }: Picture): void {
  const { context, widthPx, heightPx, tokens } = frame;
  const scale = (widthPx - LABEL_PX) / (range.endNs - range.startNs);
  const place: Place = (ns) => LABEL_PX + (ns - range.startNs) * scale;
  context.clearRect(0, 0, widthPx, heightPx);
  const [from, to] = [place(event.start_ns), place(event.start_ns + event.duration_ns)];
  context.fillStyle = tokens.hover;
  context.fillRect(from, 0, Math.max(1, to - from), heightPx);
  let top = TICK_PX;
  for (const lane of lanes) {
    drawLane(frame, lane, top, place);
    top += lane.rows * ROW_PX + GAP_PX;
  }
  context.strokeStyle = tokens.accent;
  context.lineWidth = 1.5;
  context.strokeRect(from, 0.75, Math.max(1, to - from), heightPx - 1.5);
  context.font = `${FONT_PX}px ${tokens.sans}`;
  context.fillStyle = tokens.text;
  const words = duration(event.duration_ns);
  const wide = context.measureText(words).width;
  context.fillText(words, Math.min(widthPx - wide - 4, Math.max(LABEL_PX, from + 4)), 11);
}

/** What a screen reader is told of the picture: what ran, by track. */
function wordsOf({ lanes, range }: Picture): string {
  const parts = lanes.map((lane) => {
    const names = [...new Set(lane.hits.map((hit) => shortName(hit.name)))].slice(0, 4);
    const more = lane.hits.length > 0 ? `: ${names.join(', ')}` : '';
    return `${lane.label} has ${plural(lane.hits.length + lane.leftOut, 'event')}${more}`;
  });
  return `From ${instant(range.startNs)} to ${instant(range.endNs)}: ${parts.join('; ')}.`;
}

function Picture(picture: Picture): ReactNode {
  const { lanes, range, event } = picture;
  const paint = useCallback(
    (frame: Frame) => {
      draw(frame, { lanes, range, event });
      return false;
    },
    [lanes, range, event],
  );
  const surface = useSurface(paint);
  const leftOut = lanes.reduce((sum, lane) => sum + lane.leftOut, 0);
  return (
    <>
      <Goto
        to={timelinePlace(event.start_ns, event.start_ns + event.duration_ns, event.event)}
        title="Show in the timeline"
        className="mini-timeline"
      >
        <canvas
          ref={surface.canvas}
          style={{ height: heightOf(lanes) }}
          role="img"
          aria-label={wordsOf(picture)}
        />
      </Goto>
      {leftOut > 0 && (
        <p className="muted">{plural(leftOut, 'later event')} of this time are not drawn.</p>
      )}
    </>
  );
}

interface LanesProps {
  readonly trace: string;
  readonly timeline: Timeline;
  readonly event: EventReference;
  readonly own: number | null;
}

function Lanes({ trace, timeline, event, own }: LanesProps): ReactNode {
  const range = useMemo(() => rangeAround(event), [event]);
  const tracks = useMemo(() => chosenTracks(timeline, own), [timeline, own]);
  const { startNs: start_ns, endNs: end_ns } = range;
  const answers = useQueries({
    queries: tracks.map((track) => ({
      queryKey: ['trace', trace, 'timeline/slices', track.id, start_ns, end_ns],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.get<TimelineHits>(
          `traces/${segment(trace)}/timeline/slices`,
          { track: track.id, start_ns, end_ns, limit: MOST_SLICES },
          signal,
        ),
    })),
    combine: (results) => results.map((result) => result.data),
  });
  const lanes = useMemo(
    () =>
      tracks.flatMap((track, at) => {
        const answer = answers[at];
        return answer ? [laneOf(timeline, track, answer)] : [];
      }),
    [tracks, answers, timeline],
  );
  if (lanes.length < tracks.length || lanes.length === 0) return null;
  return <Picture lanes={lanes} range={range} event={event} />;
}

interface Props {
  readonly trace: string;
  readonly event: EventReference;
}

/** The tracks around the worst event: what ran, and what did not. Pressed, it leads to the timeline. */
export function MiniTimeline({ trace, event }: Props): ReactNode {
  const timeline = useTraceAnswer<Timeline>(trace, 'timeline/tracks');
  const slice = useTraceAnswer<TimelineSlice>(
    trace,
    `timeline/slices/${event.event ?? 0}`,
    {},
    { enabled: event.event !== null },
  );
  const isKnown = event.event === null || slice.data !== undefined || slice.isError;
  if (!timeline.data || !isKnown) return null; // it says nothing that the table of events does not
  return (
    <section>
      <h4>
        Around the worst of them
        <span className="mini-note">
          {shortName(event.name)} at {instant(event.start_ns)}
          {event.event !== null && `, ${event.track}`}
          <Icon name="timeline" size={13} />
        </span>
      </h4>
      <Lanes trace={trace} timeline={timeline.data} event={event} own={slice.data?.track ?? null} />
    </section>
  );
}
