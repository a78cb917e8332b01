/** Targets of evidence links: view, trace, time or source line. */
import { createContext, use } from 'react';
import type { Link, Outcome, RunReport } from '../../api/types.gen';
import type { Recording } from '../../core/recordings';
import type { Patch } from '../../state/navigation';
import { timelineLocation } from '../../state/timeline_location';
import { locationOf } from '../../widgets/goto';

function recordingOf(link: Link, recordings: readonly Recording[]): Recording | undefined {
  const { trace, rank } = link;
  if (trace !== null) return recordings.find((recording) => recording.trace === trace);
  return rank === null ? undefined : recordings.find((recording) => recording.rank === rank);
}

/** The target of a link within its trace. */
function targetInTrace(link: Link): Patch {
  const { start_ns: start, end_ns: end, source, search } = link;
  if (start !== null && start !== undefined) {
    return timelineLocation(start, Math.max(start + 1, end ?? start));
  }
  if (source && !search && link.view === 'operators') {
    return { view: 'operators', group: 'stack', search: `stack:"${source.replaceAll('"', '')}"` };
  }
  return locationOf(link);
}

export function targetOf(link: Link, recordings: readonly Recording[]): Patch {
  const target = targetInTrace(link);
  const recording = recordingOf(link, recordings);
  return recording ? { ...target, worker: recording.name, span: recording.span } : target;
}

export interface Reported {
  /** Null if the findings state their traces themselves. */
  readonly report: RunReport | null;
  /** All traces of the run: links may lead into another one. */
  readonly recordings: readonly Recording[];
}

const Report = createContext<Reported | null>(null);
export const ReportProvider = Report.Provider;

export const useRecordings = (): readonly Recording[] => use(Report)?.recordings ?? [];

export function useTarget(): (link: Link) => Patch {
  const recordings = useRecordings();
  return (link) => targetOf(link, recordings);
}

/** The traces with a finding, as text: `ranks 0-3 of 8`; empty for a single trace. */
export function affectedTraces(report: RunReport | null, outcome: Outcome): string {
  const merged = report?.merged.find(
    (recording) =>
      recording.outcome.rule === outcome.rule &&
      (recording.traces.includes(outcome.trace) || outcome.trace === ''),
  );
  return merged?.where ?? '';
}

export const useAffectedTraces = (outcome: Outcome): string =>
  affectedTraces(use(Report)?.report ?? null, outcome);
