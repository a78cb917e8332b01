/** Short names of the API's timeline types. Times are ns from the trace's first event. */
import type {
  SliceLink as LinkResponse,
  TimelineCategory,
  TimelineHit,
  Timeline as TimelineResponse,
  TimelineSlice,
  TimelineStep,
  TimelineTrack,
} from '../../api/types.gen';

export type Timeline = TimelineResponse;
export type Track = TimelineTrack;
export type TrackKind = TimelineTrack['kind'];
export type StepMark = TimelineStep;
export type SliceCategory = TimelineCategory;
export type SliceDetails = TimelineSlice;
export type SliceLink = LinkResponse;
export type Hit = TimelineHit;

export type SlicePosition = Pick<TimelineHit, 'track' | 'row' | 'start_ns' | 'duration_ns'>;
