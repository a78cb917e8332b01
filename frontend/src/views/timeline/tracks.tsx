/** The tracks: names on the left, slices on the right, scrolled together. */

import { type ReactNode, useEffect, useLayoutEffect, useRef } from 'react';
import { Button } from '../../widgets/button';
import { type Gestures, listen } from './gestures';
import { Labels, type TrackActions } from './labels';
import type { Layout } from './layout';
import type { Overlay } from './overlay';
import { Tooltip } from './tooltip';
import type { Engine } from './use_viewer';
import { useViewerSurface } from './viewer_surface';
import type { Timeline } from './wire';

interface Props {
  readonly engine: Engine;
  readonly timeline: Timeline;
  readonly names: readonly string[];
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly actions: TrackActions;
  readonly gestures: Omit<Gestures, 'scrollBy'>;
  /** The selection, for screen readers. */
  readonly announcement: string;
  readonly onShowAllTracks: () => void;
}

export function Tracks(props: Props): ReactNode {
  const { engine, timeline, names, layout, overlay, actions, gestures, announcement } = props;
  const { viewer, scene, counters, details } = engine;
  const scroller = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const notice = useRef<HTMLParagraphElement>(null);
  const tooltip = useRef<Tooltip | null>(null);
  const heightPx = useRef(0);
  const canvas = useViewerSurface(viewer, (frame) => {
    viewer.setSize(frame.widthPx, frame.heightPx);
    // The selected slice stays visible when the panel shrinks the tracks.
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
    viewer.painted();
    // The minimap and the time axis move along.
    if (isMoving) viewer.draw();
    return isMoving;
  });
  useLayoutEffect(() => {
    // The layout comes first: once the size is known the viewer requests tiles.
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
          <Labels layout={layout} wholeNs={timeline.window_ns} actions={actions} />
          <div className="timeline-canvas-box">
            {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it has its own keys */}
            <canvas
              ref={canvas}
              className="timeline-canvas"
              tabIndex={0}
              role="application"
              aria-roledescription="timeline"
              aria-label="Tracks of slices in time. Arrow keys move between slices, w and s zoom, a and d pan; the tab Visible slices shows them as a table."
            />
            <div className="timeline-tip tip popup" ref={tip} hidden={true} />
            <p className="timeline-notice" ref={notice} role="status" hidden={true} />
            <p className="visually-hidden" aria-live="polite">
              {announcement}
            </p>
          </div>
        </div>
      </div>
      {isEmpty && (
        <div className="timeline-none">
          <p>No track is shown.</p>
          <Button onClick={props.onShowAllTracks}>Show all tracks</Button>
        </div>
      )}
    </div>
  );
}
