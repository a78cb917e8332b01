/** Where evidence is shown: in which view of which recording, at which time, or on which line of the program. */
import { createContext, use } from 'react';
import type { Link, Outcome, RunReport } from '../../api/types.gen';
import type { Recording } from '../../core/recordings';
import type { Patch } from '../../state/navigation';
import { timelinePlace } from '../../state/timeline_place';
import { placeOf } from '../../widgets/goto';

function recordingOf(link: Link, recordings: readonly Recording[]): Recording | undefined {
  const { trace, rank } = link;
  if (trace !== null) return recordings.find((each) => each.trace === trace);
  return rank === null ? undefined : recordings.find((each) => each.rank === rank);
}

/** What a link's place is, before the recording that it is in. */
function placeInRecording(link: Link): Patch {
  const { start_ns: start, end_ns: end, source, search } = link;
  if (start !== null && start !== undefined) {
    return timelinePlace(start, Math.max(start + 1, end ?? start));
  }
  if (source && !search && link.view === 'operators') {
    return { view: 'operators', group: 'stack', search: `stack:"${source.replaceAll('"', '')}"` };
  }
  return placeOf(link);
}

export function placeOfLink(link: Link, recordings: readonly Recording[]): Patch {
  const place = placeInRecording(link);
  const recording = recordingOf(link, recordings);
  return recording ? { ...place, worker: recording.name, span: recording.span } : place;
}

export interface Reported {
  /** Null where it is told already in which of them something was found. */
  readonly report: RunReport | null;
  /** All recordings of the run: links may lead into another. */
  readonly recordings: readonly Recording[];
}

/** What the evidence stands in. */
const Report = createContext<Reported | null>(null);
export const ReportProvider = Report.Provider;

export const useRecordings = (): readonly Recording[] => use(Report)?.recordings ?? [];

export function usePlace(): (link: Link) => Patch {
  const recordings = useRecordings();
  return (link) => placeOfLink(link, recordings);
}

/** In how many recordings a finding was found, in words: `ranks 0-3 of 8`; empty where there is one. */
export function foundIn(report: RunReport | null, outcome: Outcome): string {
  const merged = report?.merged.find(
    (each) =>
      each.outcome.rule === outcome.rule &&
      (each.traces.includes(outcome.trace) || outcome.trace === ''),
  );
  return merged?.where ?? '';
}

export const useFoundIn = (outcome: Outcome): string =>
  foundIn(use(Report)?.report ?? null, outcome);
