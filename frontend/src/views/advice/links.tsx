/** Targets of evidence links: view, trace, time or source line. */
import { createContext, use } from 'react';
import type { Link, Outcome, RunReport } from '../../api/types.gen';
import { count } from '../../core/format';
import { rankLabel, type TraceRef } from '../../core/traces';
import type { Patch } from '../../state/navigation';
import { timelineLocation } from '../../state/timeline_location';
import { locationOf } from '../../widgets/goto';

function traceRefOf(link: Link, traceRefs: readonly TraceRef[]): TraceRef | undefined {
  const { trace, rank } = link;
  if (trace !== null) return traceRefs.find((traceRef) => traceRef.trace === trace);
  return rank === null ? undefined : traceRefs.find((traceRef) => traceRef.rank === rank);
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

export function targetOf(link: Link, traceRefs: readonly TraceRef[]): Patch {
  const target = targetInTrace(link);
  const traceRef = traceRefOf(link, traceRefs);
  return traceRef ? { ...target, worker: traceRef.name, span: traceRef.span } : target;
}

export interface Reported {
  /** Null if the findings state their traces themselves. */
  readonly report: RunReport | null;
  /** All traces of the run: links may lead into another one. */
  readonly traceRefs: readonly TraceRef[];
}

const Report = createContext<Reported | null>(null);
export const ReportProvider = Report.Provider;

export const useTraceRefs = (): readonly TraceRef[] => use(Report)?.traceRefs ?? [];

export function useTarget(): (link: Link) => Patch {
  const traceRefs = useTraceRefs();
  return (link) => targetOf(link, traceRefs);
}

/** The traces with a finding, as text: `ranks 0-3 of 8`; empty for a single trace. */
export function affectedTraces(report: RunReport | null, outcome: Outcome): string {
  const merged = report?.merged.find(
    (merged) =>
      merged.outcome.rule === outcome.rule &&
      (merged.traces.includes(outcome.trace) || outcome.trace === ''),
  );
  return merged?.where ?? '';
}

export const useAffectedTraces = (outcome: Outcome): string =>
  affectedTraces(use(Report)?.report ?? null, outcome);

/** The ranks that cause a finding of the whole run: `cause: rank 1`; empty if it blames none. */
export function useCause({ blamed }: Outcome): string {
  const traceRefs = useTraceRefs();
  const [first, ...others] = blamed.flatMap(
    (trace) => traceRefs.find((traceRef) => traceRef.trace === trace) ?? [],
  );
  if (!first) return '';
  return `cause: ${rankLabel(first)}${others.length > 0 ? ` and ${count(others.length)} more` : ''}`;
}
