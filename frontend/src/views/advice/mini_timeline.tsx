import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { Outcome, TimelineExcerpt } from '../../api/types.gen';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { colourId } from '../../core/colour';
import { duration, instant, plural } from '../../core/format';
import { shortName } from '../../core/names';
import { timelineLocation } from '../../state/timeline_location';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import {
  type Box,
  claimedText,
  type EventBox,
  eventText,
  excerptParameters,
  extentOf,
  heightOf,
  laneLabel,
  layoutOf,
  type PictureLayout,
  type SliceBox,
  type Subject,
  subjectOf,
  type Text,
} from './excerpt_layout';
import './mini_timeline.css';

const FONT_PX = 11;
const TEXT_FROM_PX = 24;
const BASELINE_PX = 12;
const BAND_ALPHA = 0.16;
const OUTLINE_PX = 2;
const HALO_PX = 4;

interface Shown {
  readonly excerpt: TimelineExcerpt;
  readonly subject: Subject;
}

const fontOf = ({ tokens }: Frame): string => `${FONT_PX}px ${tokens.sans}`;

function fillBox({ context }: Frame, { x, y, width, height }: Box, fill: string): void {
  context.fillStyle = fill;
  context.fillRect(x, y, width, height);
}

function drawText(frame: Frame, { text, x, y }: Text, mostPx: number, fill: string): void {
  const { context } = frame;
  const font = fontOf(frame);
  context.font = font;
  context.fillStyle = fill;
  context.fillText(fitterOf(context, font).fit(text, mostPx), x, y + BASELINE_PX);
}

function drawSlice(frame: Frame, slice: SliceBox): void {
  const seam = slice.width > 3 ? 0.5 : 0;
  const fill = fillOf(colourId(slice.category), slice.name, frame.theme);
  fillBox(frame, { ...slice, width: slice.width - seam }, fill);
}

function drawName(frame: Frame, { name, x, y, width }: SliceBox): void {
  if (width < TEXT_FROM_PX) return;
  drawText(frame, { text: shortName(name), x: x + 4, y: y - 1 }, width - 8, INK[frame.theme]);
}

/** The claimed times as bands; slices cover them. */
function drawBands(frame: Frame, { claimed }: PictureLayout): void {
  const { context, tokens } = frame;
  context.globalAlpha = BAND_ALPHA;
  for (const band of claimed) fillBox(frame, band, tokens.warn);
  context.globalAlpha = 1;
}

function drawEdges(frame: Frame, { claimed, claimedLabel }: PictureLayout): void {
  const { tokens, widthPx } = frame;
  for (const box of claimed.flatMap(({ bar, edges }) => [bar, ...edges])) {
    fillBox(frame, box, tokens.warn);
  }
  if (claimedLabel) drawText(frame, claimedLabel, widthPx - claimedLabel.x, tokens.warn);
}

function drawOutline({ context, tokens }: Frame, { x, y, width, height }: Box): void {
  const lines = [
    [tokens.surface, HALO_PX],
    [tokens.accent, OUTLINE_PX],
  ] as const;
  for (const [colour, linePx] of lines) {
    context.strokeStyle = colour;
    context.lineWidth = linePx;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }
}

function drawEvent(frame: Frame, event: EventBox): void {
  const { tokens, theme } = frame;
  if (event.leader) fillBox(frame, event.leader, tokens.accent);
  drawOutline(frame, event);
  fillBox(frame, event.chip, tokens.accent);
  drawText(frame, event.label, event.chip.width, INK[theme]);
}

function draw(frame: Frame, { excerpt, subject }: Shown): void {
  const { context, widthPx, tokens } = frame;
  context.font = fontOf(frame);
  const measure = (text: string): number => context.measureText(text).width;
  const layout = layoutOf(excerpt, subject, widthPx, measure);
  const slices = layout.lanes.flatMap((lane) => lane.slices);
  for (const lane of layout.lanes) fillBox(frame, lane, tokens.sunken);
  drawBands(frame, layout);
  for (const slice of slices) drawSlice(frame, slice);
  drawEdges(frame, layout);
  if (layout.event) drawEvent(frame, layout.event);
  for (const slice of slices) drawName(frame, slice);
  for (const label of layout.lanes.flatMap((lane) => lane.labels)) {
    drawText(frame, label, layout.labelsPx - 8, tokens.muted);
  }
}

/** The picture as text, for screen readers. */
export function describe({ excerpt, subject }: Shown): string {
  const { event, claimed } = subject;
  const first = excerpt.lanes[0];
  const parts = excerpt.lanes.map((lane) => {
    const total = lane.count.reduce((sum, count) => sum + count, 0);
    const names = lane.names.slice(0, 4).map(shortName).join(', ');
    const label = laneLabel(lane, event);
    return total > 0 ? `${label} has ${plural(total, 'event')}: ${names}` : label;
  });
  const cited =
    event && excerpt.event && first
      ? [`${eventText(event)}, on ${laneLabel(first, event)}, level ${excerpt.event.row + 1}`]
      : [];
  const time = claimed.length > 0 ? [claimedText(claimed)] : [];
  const range = `From ${instant(excerpt.start_ns)} to ${instant(excerpt.end_ns)}`;
  return `${[range, ...cited, ...time, ...parts].join('. ')}.`;
}

function Picture(shown: Shown): ReactNode {
  const { excerpt, subject } = shown;
  const surface = useSurface((frame) => {
    draw(frame, shown);
    return false;
  });
  const { startNs, endNs } = extentOf(subject);
  return (
    <Goto
      to={timelineLocation(startNs, endNs, subject.event?.event)}
      title="Show in the timeline"
      className="mini-timeline"
    >
      <canvas
        ref={surface.canvas}
        style={{ height: heightOf(excerpt, subject) }}
        role="img"
        aria-label={describe(shown)}
      />
    </Goto>
  );
}

/** The title of a picture, and its subject in short. */
function titleOf({ event, claimed }: Subject): readonly [string, string] {
  if (!event) {
    const [longest] = claimed;
    const time = longest ? `${duration(longest.claimed_ns)} at ${instant(longest.start_ns)}` : '';
    return ['Longest claimed time', time];
  }
  const where = event.event === null ? '' : `, ${event.track}`;
  return [
    'Around the worst event',
    `${shortName(event.name)} at ${instant(event.start_ns)}${where}`,
  ];
}

interface Props {
  readonly outcome: Outcome;
}

/** The first event of a finding and the time claimed there; a click opens the timeline. */
export function MiniTimeline({ outcome }: Props): ReactNode {
  const subject = useMemo(() => subjectOf(outcome), [outcome]);
  const parameters = subject ? excerptParameters(subject) : { time: [] };
  const query = useTraceQuery(outcome.trace, 'timeline/excerpt', parameters, {
    enabled: subject !== null,
  });
  if (!subject || !query.data || query.isPlaceholderData) return null;
  const [title, note] = titleOf(subject);
  return (
    <section>
      <h4>
        {title}
        <span className="mini-note inline">
          {note}
          <Icon name="timeline" size={13} />
        </span>
      </h4>
      <Picture excerpt={query.data} subject={subject} />
    </section>
  );
}
