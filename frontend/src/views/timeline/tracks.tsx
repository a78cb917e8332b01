/** The tracks: names at the left, slices at the right, in one scroll. */
import { type ReactNode, useEffect, useLayoutEffect, useRef } from 'react';
import { useSurface } from '../../canvas/surface';
import { type Gestures, listen } from './gestures';
import { Labels, type TrackActs } from './labels';
import type { Layout } from './layout';
import type { Overlay } from './overlay';
import { Tooltip } from './tooltip';
import { useDrawn } from './use_drawn';
import type { Machine } from './use_viewer';
import type { Timeline } from './wire';

interface Props {
  readonly machine: Machine;
  readonly timeline: Timeline;
  readonly names: readonly string[];
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly acts: TrackActs;
  readonly gestures: Omit<Gestures, 'scrollBy'>;
  /** What is selected, in words. */
  readonly spoken: string;
  readonly onShowAllTracks: () => void;
}

export function Tracks(props: Props): ReactNode {
  const { machine, timeline, names, layout, overlay, acts, gestures, spoken } = props;
  const { viewer, scene, counters, details } = machine;
  const scroller = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const notice = useRef<HTMLParagraphElement>(null);
  const tooltip = useRef<Tooltip | null>(null);
  const heightPx = useRef(0);
  const { canvas, redraw } = useSurface((frame) => {
    viewer.setSize(frame.widthPx, frame.heightPx);
    // What is selected stays in sight when its details take room.
    if (frame.heightPx < heightPx.current && overlay.selected) {
      viewer.revealLane(overlay.selected.track, overlay.selected.row);
    }
    heightPx.current = frame.heightPx;
    const isMoving = scene.paint(frame, overlay);
    tooltip.current?.update({ names, categories: timeline.categories }, details.find);
    if (notice.current) {
      const { failure } = viewer.store;
      notice.current.hidden = failure === null;
      notice.current.textContent = failure ? `${failure.message} Trying again.` : '';
    }
    // What moves is seen in the strip and on the axis as well.
    if (isMoving) viewer.draw();
    return isMoving;
  });
  useDrawn(viewer, redraw);
  useLayoutEffect(() => {
    // First what there is, then how large it is: with both known the tiles are asked for at once.
    viewer.setLayout(layout);
    viewer.setSize(canvas.current?.clientWidth ?? 1, canvas.current?.clientHeight ?? 1);
  }, [viewer, layout, canvas]);

  const latest = useRef<Gestures>({ ...gestures, scrollBy: () => undefined });
  latest.current = {
    ...gestures,
    scrollBy: (px) => {
      if (scroller.current) scroller.current.scrollTop += px;
      viewer.setScroll(scroller.current?.scrollTop ?? 0);
    },
  };
  useEffect(() => {
    const [surface, box] = [canvas.current, tip.current];
    if (!(surface && box)) return undefined;
    tooltip.current = new Tooltip(box, viewer, counters);
    viewer.scrollTo = (px) => scroller.current?.scrollTo({ top: px });
    return listen(viewer, surface, () => latest.current);
  }, [viewer, counters, canvas]);
  const isEmpty = layout.lanes.length === 0 && layout.pinned.length === 0;
  return (
    <div className="timeline-frame">
      <div
        className="timeline-scroller"
        ref={scroller}
        onScroll={(event) => viewer.setScroll(event.currentTarget.scrollTop)}
      >
        <div className="timeline-body">
          <Labels layout={layout} wholeNs={timeline.end_ns - timeline.start_ns} acts={acts} />
          <div className="timeline-canvas-box">
            {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it is gone through with keys of its own */}
            <canvas
              ref={canvas}
              className="timeline-canvas"
              tabIndex={0}
              role="application"
              aria-roledescription="timeline"
              aria-label="Tracks of slices in time. Arrow keys go from slice to slice, w and s zoom, a and d move; the tab Listed has what is in sight as a table."
            />
            <div className="timeline-tip" ref={tip} hidden={true} />
            <p className="timeline-notice" ref={notice} role="status" hidden={true} />
            <p className="visually-hidden" aria-live="polite">
              {spoken}
            </p>
          </div>
        </div>
      </div>
      {isEmpty && (
        <div className="timeline-none">
          <p>No track is shown.</p>
          <button type="button" className="button" onClick={props.onShowAllTracks}>
            Show all tracks
          </button>
        </div>
      )}
    </div>
  );
}
