import type { ReactNode } from 'react';
import { useNarrowing, useTraceQuery } from '../../api/queries';
import type { DurationClass, KernelDurations } from '../../api/types.gen';
import { count, duration, plural, share } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { Icon } from '../../widgets/icon';
import './durations.css';

/** Conditions that a click on a class writes into the search. */
const CONDITIONS = /\b(?:max:>=|min:<)[\d.]+(?:ns|us|ms)(?:\s+|$)/g;

/** A whole number of microseconds or milliseconds, as the search reads it. */
const searched = (ns: number): string => (ns < 1e6 ? `${ns / 1e3}us` : `${ns / 1e6}ms`);

/** The search for kernels with a run in a class: their durations reach into it. */
export function searchOf({ from_ns, below_ns }: DurationClass): string {
  const parts = [
    from_ns > 0 && `max:>=${searched(from_ns)}`,
    below_ns !== null && `min:<${searched(below_ns)}`,
  ];
  return parts.filter(Boolean).join(' ');
}

/** The search with the conditions of a class, or without them if it had them. */
export function toggled(search: string, of: DurationClass): string {
  const conditions = searchOf(of);
  const others = search.replaceAll(CONDITIONS, '').trim();
  return isIn(search, conditions) ? others : `${others} ${conditions}`.trim();
}

const isIn = (search: string, conditions: string): boolean =>
  (search.match(CONDITIONS) ?? []).join(' ').replaceAll(/\s+/g, ' ').trim() === conditions;

const edge = (ns: number): string => duration(ns).replace(/\.0+(?= )/, '');

/** `1–2 µs`, `500 µs–1 ms`: a unit that both edges have is written once. */
export function rangeOf({ from_ns, below_ns }: DurationClass): string {
  if (below_ns === null) return `≥ ${edge(from_ns)}`;
  if (from_ns === 0) return `< ${edge(below_ns)}`;
  const [low, high] = [edge(from_ns), edge(below_ns)];
  const unit = / \S+$/.exec(high)?.[0] ?? '';
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low}–${high}`;
}

/** The part of kernels and of their time that is shorter than a launch, as a sentence. */
export function launchSentence(of: KernelDurations): string {
  if (of.launch_ns === null) return 'No call that launches a kernel was recorded.';
  const kernels = share(of.shorter_count / of.kernel_count);
  const time = share(of.shorter_ns / Math.max(1, of.total_ns));
  return `${kernels} of ${plural(of.kernel_count, 'kernel')}, with ${time} of kernel time, take less than a launch call (median ${duration(of.launch_ns)} as recorded).`;
}

interface ClassProps {
  readonly of: DurationClass;
  readonly whole: KernelDurations;
  /** The largest fraction of kernels or time in a class. */
  readonly scale: number;
}

function Class({ of, whole, scale }: ClassProps): ReactNode {
  const { location, go } = useNavigation();
  const kernels = of.kernel_count / whole.kernel_count;
  const time = of.total_ns / Math.max(1, whole.total_ns);
  const range = rangeOf(of);
  const words = `${range}: ${plural(of.kernel_count, 'kernel')} (${share(kernels)}), ${duration(of.total_ns)} (${share(time)} of kernel time)`;
  const height = (part: number): string => (part > 0 ? `max(2px, ${(part / scale) * 100}%)` : '0');
  return (
    <li>
      <button
        type="button"
        title={`${words}\nClick: kernels with durations in this range`}
        aria-label={words}
        aria-pressed={isIn(location.search, searchOf(of))}
        disabled={of.kernel_count === 0}
        onClick={() => go({ search: toggled(location.search, of) }, 'replace')}
      >
        <span className="durations-bars">
          <span className="durations-count" style={{ height: height(kernels) }} />
          <span className="durations-time" style={{ height: height(time) }} />
        </span>
        <span className="durations-range note">{range}</span>
      </button>
    </li>
  );
}

export function DurationsChart({ durations }: { readonly durations: KernelDurations }): ReactNode {
  const { classes, kernel_count, total_ns } = durations;
  const scale = Math.max(
    ...classes.map((one) =>
      Math.max(one.kernel_count / kernel_count, one.total_ns / Math.max(1, total_ns)),
    ),
  );
  return (
    <>
      <ul className="durations-classes" aria-label="Kernels by duration">
        {classes.map((one) => (
          <Class key={one.from_ns} of={one} whole={durations} scale={scale} />
        ))}
      </ul>
      <ul className="legend note">
        <li>
          <span className="durations-swatch durations-count" /> of {count(kernel_count)} kernels
        </li>
        <li>
          <span className="durations-swatch durations-time" /> of {duration(total_ns)} kernel time
        </li>
        <li>A click lists the kernels with durations in the range.</li>
      </ul>
    </>
  );
}

/** A histogram of the durations of all kernels, folded to a sentence about short ones. */
export function Durations({ trace }: { readonly trace: string }): ReactNode {
  const narrowing = useNarrowing(trace);
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(
    trace,
    'kernels/durations',
    { start_ns, end_ns },
    { enabled: narrowing !== undefined },
  );
  const durations = query.data;
  if (!durations || durations.kernel_count === 0) return null;
  return (
    <details className="durations bar">
      <summary className="flex">
        <Icon name="chevron" />
        <span className="strong">Durations</span>
        <span className="muted">{launchSentence(durations)}</span>
      </summary>
      <DurationsChart durations={durations} />
    </details>
  );
}
