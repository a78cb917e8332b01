/** The server's words for a timeline, as this view calls them. Times are ns from the trace's first event. */
import type {
  Timeline as TimelineAnswer,
  TimelineCategory,
  TimelineHit,
  TimelineSlice,
  TimelineStep,
  TimelineTrack,
} from '../../api/types.gen';

export type Timeline = TimelineAnswer;
export type Track = TimelineTrack;
export type TrackKind = TimelineTrack['kind'];
export type StepMark = TimelineStep;
export type SliceCategory = TimelineCategory;
export type SliceDetails = TimelineSlice;
export type Hit = TimelineHit;

/** Where a slice is. */
export type Place = Pick<TimelineHit, 'track' | 'row' | 'start_ns' | 'duration_ns'>;
