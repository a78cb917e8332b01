/** One step as recorded, and below it as simulated, on one scale. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type PointerEvent, type ReactNode, useState } from 'react';
import { api } from '../../api/client';
import type { WhatIfBlocks, WhatIfLane, WhatIfTimeline } from '../../api/types.gen';
import { fillOf, INK } from '../../canvas/colours';
import { type Frame, useSurface } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { colourId } from '../../core/colour';
import { change, duration, plural } from '../../core/format';
import { shortName } from '../../core/names';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions } from '../../state/option';
import { timelineLocation } from '../../state/timeline_location';
import { IconButton } from '../../widgets/button';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import type { Parameters } from './changes';
import { type Block, blockAt, type Picture, pictureOf, ROW_PX, type Row } from './rows';

const LABEL_PX = 92;
const TEXT_FROM_PX = 26;
const FONT_PX = 11;
const MARK_PX = 2.5;
const STRIPE_PX = 7;
const PIXELS = 1200;

type ToPx = (ns: number) => number;

const scaleOf =
  (widthPx: number, lengthNs: number): ToPx =>
  (ns) =>
    LABEL_PX + (ns / lengthNs) * (widthPx - LABEL_PX);

function drawBlock(frame: Frame, block: Block, y: number, xOf: ToPx): void {
  const { context, theme, tokens } = frame;
  const left = Math.max(LABEL_PX, xOf(block.startNs));
  const width = Math.max(1, Math.min(frame.widthPx, xOf(block.endNs)) - left);
  context.fillStyle = fillOf(colourId(block.category), block.name, theme);
  context.fillRect(left, y, width > 3 ? width - 0.5 : width, ROW_PX - 3);
  if (block.isMarked) {
    context.fillStyle = tokens.warn;
    context.fillRect(left, y + ROW_PX - 3 - MARK_PX, width, MARK_PX);
  }
  if (width < TEXT_FROM_PX || block.count > 1) return;
  const font = `${FONT_PX}px ${tokens.sans}`;
  context.font = font;
  context.fillStyle = INK[theme];
  context.fillText(fitterOf(context, font).fit(shortName(block.name), width - 8), left + 4, y + 11);
}

function drawRow(frame: Frame, row: Row, xOf: ToPx): void {
  const { context, tokens, widthPx } = frame;
  const font = `${FONT_PX}px ${tokens.sans}`;
  context.font = font;
  context.fillStyle = row.isHead ? tokens.text : tokens.muted;
  context.fillText(
    fitterOf(context, font).fit(row.label, row.isHead ? widthPx : LABEL_PX - 8),
    0,
    row.topPx + 12,
  );
  if (row.isHead) return;
  context.fillStyle = tokens.sunken;
  context.fillRect(LABEL_PX, row.topPx, widthPx - LABEL_PX, ROW_PX - 2);
  for (const block of row.blocks) drawBlock(frame, block, row.topPx + 0.5, xOf);
}

/** The end of a step; the time that is saved is striped. */
function drawEnd(frame: Frame, picture: Picture, xOf: ToPx): void {
  const { context, tokens } = frame;
  for (const { endNs, topPx, heightPx } of picture.ends) {
    const x = xOf(endNs);
    context.strokeStyle = tokens.lineStrong;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = x + STRIPE_PX; at < frame.widthPx + heightPx; at += STRIPE_PX) {
      context.moveTo(Math.max(x, at - heightPx), topPx + Math.min(heightPx, at - x));
      context.lineTo(
        Math.min(frame.widthPx, at),
        topPx + Math.max(0, at - Math.min(frame.widthPx, at)),
      );
    }
    context.stroke();
    context.fillStyle = tokens.accent;
    context.fillRect(Math.min(x, frame.widthPx - 1.5), topPx, 1.5, heightPx);
  }
}

function draw(frame: Frame, picture: Picture): void {
  const { context, widthPx, heightPx } = frame;
  const xOf = scaleOf(widthPx, picture.lengthNs);
  context.clearRect(0, 0, widthPx, heightPx);
  for (const row of picture.rows) drawRow(frame, row, xOf);
  drawEnd(frame, picture, xOf);
}

interface Pointed {
  readonly block: Block;
  readonly x: number;
  readonly y: number;
}

function Tip({ block, x, y }: Pointed): ReactNode {
  const { name, count, startNs, endNs, changeNs } = block;
  return (
    <div className="tip popup" style={{ left: Math.max(0, Math.min(x, 700) - 60), top: y + 16 }}>
      <b>{count === 1 ? shortName(name) : plural(count, 'short event')}</b>
      <div className="muted">
        {duration(endNs - startNs)} at {duration(Math.max(0, startNs))}
        {changeNs !== 0 && `, simulated ${change(changeNs, 'ns')}`}
      </div>
    </div>
  );
}

/** The picture as text, for screen readers. */
function describe({ recorded_ns, simulated_ns, lanes }: WhatIfTimeline): string {
  const busy = ({ start_ns, end_ns }: WhatIfBlocks): number =>
    end_ns.reduce((sum, end, at) => sum + end - Math.max(0, start_ns[at] ?? 0), 0);
  const parts = lanes.map(
    ({ label, recorded, simulated }: WhatIfLane) =>
      `${label}: busy ${duration(busy(recorded))} recorded, ${duration(busy(simulated))} simulated`,
  );
  return `Recorded ${duration(recorded_ns)}, simulated ${duration(simulated_ns)}. ${parts.join('; ')}.`;
}

function Canvas({ timeline }: { readonly timeline: WhatIfTimeline }): ReactNode {
  const picture = pictureOf(timeline);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const { canvas } = useSurface((frame) => {
    draw(frame, picture);
    return false;
  });
  const point = (event: PointerEvent<HTMLCanvasElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const ns = ((x - LABEL_PX) / (box.width - LABEL_PX)) * picture.lengthNs;
    const block = blockAt(picture, ns, y, picture.lengthNs / (box.width - LABEL_PX));
    setPointed(block && { block, x, y });
  };
  return (
    <div className="whatif-lanes">
      <canvas
        ref={canvas}
        style={{ height: picture.heightPx }}
        role="img"
        aria-label={describe(timeline)}
        onPointerMove={point}
        onPointerLeave={() => setPointed(null)}
      />
      {pointed && <Tip {...pointed} />}
    </div>
  );
}

function StepChoice({ timeline }: { readonly timeline: WhatIfTimeline }): ReactNode {
  const change = useChangeOptions();
  const { step, steps } = timeline;
  if (step === null) return null;
  const at = steps.indexOf(step);
  const button = (by: -1 | 1, label: string): ReactNode => (
    <IconButton
      icon="chevron"
      className={by < 0 ? 'whatif-back' : ''}
      label={label}
      title={label}
      disabled={steps[at + by] === undefined}
      onClick={() => change({ at: String(steps[at + by]) })}
    />
  );
  return (
    <span className="inline">
      {button(-1, 'Previous step')}
      <span className="strong">Step {step}</span>
      {button(1, 'Next step')}
    </span>
  );
}

interface Props {
  readonly trace: string;
  readonly parameters: Parameters;
  /** Whether the prediction is requested, which comes first. */
  readonly isWaiting: boolean;
}

export function StepTimeline({ trace, parameters, isWaiting }: Props): ReactNode {
  const { location } = useNavigation();
  const { at = '' } = location.options;
  const step = /^\d{1,9}$/.test(at) ? Number(at) : null;
  const query = useQuery({
    queryKey: ['what-if-timeline', trace, parameters, step],
    queryFn: ({ signal }) =>
      api.get(
        'traces/{trace}/what-if/timeline',
        { trace, ...parameters, step, pixels: PIXELS },
        signal,
      ),
    enabled: !isWaiting,
    placeholderData: (previous, last) =>
      last?.queryKey[1] === trace ? keepPreviousData(previous) : undefined,
  });
  const timeline = query.data;
  if (!timeline || timeline.lanes.length === 0) return null;
  return (
    <Card
      title={timeline.step === null ? 'Timeline' : 'Timeline of a step'}
      label="Timeline"
      actions={
        <span className="wrap">
          <StepChoice timeline={timeline} />
          <Goto
            to={timelineLocation(timeline.start_ns, timeline.start_ns + timeline.recorded_ns)}
            className="button"
          >
            Recorded timeline
          </Goto>
        </span>
      }
    >
      <Canvas timeline={timeline} />
      <p className="note whatif-legend">
        <span className="inline">
          <i className="whatif-mark" /> takes another time than recorded
        </span>
        <span className="inline">
          <i className="whatif-stripes" /> saved
        </span>
      </p>
    </Card>
  );
}
