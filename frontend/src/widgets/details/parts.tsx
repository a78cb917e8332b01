/** Parts of the details of operators and kernels. */
import type { ReactNode } from 'react';
import type { CallInstance, RelatedOperator, StackUse, StepUse } from '../../api/types.gen';
import { StepBars } from '../../charts/step_bars';
import { count, duration, instant, plural, quantityExact, share } from '../../core/format';
import { type Patch, useNavigation } from '../../state/navigation';
import { Code } from '../code';
import { Goto } from '../goto';
import { Icon } from '../icon';
import { type PlainColumn, PlainTable } from '../plain_table';
import { SourceLine } from '../source_line';
import { operatorLocation } from './locations';
import './details.css';

interface SectionProps {
  readonly title: string;
  readonly note?: string | undefined;
  readonly children: ReactNode;
}

export function Section({ title, note, children }: SectionProps): ReactNode {
  return (
    <section className="detail">
      <h3>
        {title}
        {note !== undefined && <small>{note}</small>}
      </h3>
      {children}
    </section>
  );
}

/** A note on the number of rows shown, if rows are left out. */
export const cutNote = (shown: number, all: number): string | undefined =>
  all > shown ? `the ${shown} most expensive of ${count(all)}` : undefined;

export interface ShareRow {
  readonly key: string;
  readonly name: ReactNode;
  readonly title: string;
  readonly share: number;
  readonly ns: number;
  readonly calls: number;
}

interface ShareRowsProps {
  readonly title: string;
  readonly note?: string | undefined;
  readonly rows: readonly ShareRow[];
}

/** Parts of a whole, each with name, amount and bar; nothing without parts. */
export function ShareRows({ title: heading, note, rows }: ShareRowsProps): ReactNode {
  if (rows.length === 0) return null;
  return (
    <Section title={heading} note={note}>
      <ul className="share-rows">
        {rows.map(({ key, name, title, share: part, ns, calls }) => (
          <li key={key} className="share-row" title={title}>
            <span
              className="share-row-bar"
              aria-hidden="true"
              style={{ width: `${part * 100}%` }}
            />
            <span className="ellipsis">{name}</span>
            <span className="note number">{count(calls)}×</span>
            <span className="strong number">{duration(ns)}</span>
            <span className="note number">{share(part)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface RelatedProps {
  readonly title: string;
  readonly rows: readonly RelatedOperator[];
  /** The name of calls outside operators. */
  readonly none: string;
}

/** Callers, callees or launchers, each with a link. */
export function Related({ title, rows, none }: RelatedProps): ReactNode {
  return (
    <ShareRows
      title={title}
      rows={rows.map(({ kind, name, time_ns, share: part, call_count }) => ({
        key: `${kind} ${name}`,
        title: `${name || none}\n${quantityExact(time_ns, 'ns')}`,
        name:
          name === '' ? (
            <span className="muted">{none}</span>
          ) : (
            <Goto to={operatorLocation(name, kind)}>{name}</Goto>
          ),
        share: part,
        ns: time_ns,
        calls: call_count,
      }))}
    />
  );
}

interface StepsProps {
  readonly steps: readonly StepUse[];
  readonly what: string;
}

/** The calls per step. */
export function Steps({ steps, what }: StepsProps): ReactNode {
  const { location, go } = useNavigation();
  if (steps.length < 2) return null;
  const used = steps.filter((step) => step.call_count > 0);
  const calls = used.reduce((sum, step) => sum + step.call_count, 0);
  const note =
    used.length === steps.length
      ? `${count(calls / steps.length)} ${what}s per step`
      : `in ${used.length} of ${plural(steps.length, 'step')}`;
  return (
    <Section title="By step" note={note}>
      <StepBars steps={steps} what={what} chosen={location.step} choose={(step) => go({ step })} />
      <p className="between note" aria-hidden="true">
        <span>step {steps[0]?.number}</span>
        <span>{steps.at(-1)?.number}</span>
      </p>
    </Section>
  );
}

const SHOWN_FRAMES = 6;

function Frames({ stack }: { readonly stack: StackUse }): ReactNode {
  const line = (frame: StackUse['frames'][number], at: number): ReactNode => (
    <li key={`${at} ${frame.text}`}>
      {frame.line ? (
        <SourceLine path={frame.line.path} line={frame.line.line} of={frame.line.function} />
      ) : (
        <span className="mono muted">{frame.text}</span>
      )}
    </li>
  );
  const [top, rest] = [stack.frames.slice(0, SHOWN_FRAMES), stack.frames.slice(SHOWN_FRAMES)];
  return (
    <>
      <ol className="frames">{top.map(line)}</ol>
      {rest.length > 0 && (
        <details>
          <summary className="note">{plural(rest.length, 'outer function')}</summary>
          <ol className="frames">{rest.map(line)}</ol>
        </details>
      )}
    </>
  );
}

interface StacksProps {
  readonly stacks: readonly StackUse[];
  readonly all: number;
  /** The code that records stacks, if they were not recorded. */
  readonly missing: string;
  readonly totalNs: number;
  /** The location in the flame graph. */
  readonly inFlame: Patch;
}

/** Call stacks with links to the source lines. */
export function Stacks({ stacks, all, missing, totalNs, inFlame }: StacksProps): ReactNode {
  if (missing !== '') {
    return (
      <Section title="Called from" note="call stacks were not recorded">
        <Code code={missing} />
      </Section>
    );
  }
  if (stacks.length === 0) return null;
  return (
    <Section title="Called from" note={cutNote(stacks.length, all)}>
      <Goto
        to={inFlame}
        className="stacks-link inline"
        title="All calls of this name, with their callers"
      >
        Show in the flame graph <Icon name="arrow" size={13} />
      </Goto>
      <ul className="stacks">
        {stacks.map((stack) => (
          <li key={stack.frames.map((frame) => frame.text).join(';')}>
            <p className="note">
              <strong>{duration(stack.time_ns)}</strong>{' '}
              {totalNs > 0 && share(stack.time_ns / totalNs)} in {plural(stack.call_count, 'call')}
            </p>
            <Frames stack={stack} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface InstancesProps {
  readonly title: string;
  readonly rows: readonly CallInstance[];
  /** Whether the device time differs from the duration. */
  readonly hasDevice: boolean;
  readonly device: string;
}

/** The longest calls with links to the timeline. */
export function Instances({ title, rows, hasDevice, device }: InstancesProps): ReactNode {
  const onDevice: PlainColumn<CallInstance> = {
    label: device,
    isNumber: true,
    title: ({ device_ns }) => quantityExact(device_ns, 'ns'),
    cell: ({ device_ns }) => (device_ns > 0 ? duration(device_ns) : '–'),
  };
  return (
    <Section title={title}>
      <PlainTable
        className="plain instances"
        rows={rows}
        keyOf={({ event }) => event}
        columns={[
          {
            label: 'Start',
            cell: ({ event, start_ns }) => (
              <Goto
                to={{ view: 'timeline', event }}
                title={`${quantityExact(start_ns, 'ns')}: show in the timeline`}
              >
                <Icon name="timeline" size={13} /> {instant(start_ns)}
              </Goto>
            ),
          },
          {
            label: 'Duration',
            isNumber: true,
            title: ({ duration_ns }) => quantityExact(duration_ns, 'ns'),
            cell: ({ duration_ns }) => duration(duration_ns),
          },
          ...(hasDevice ? [onDevice] : []),
          {
            label: 'Track',
            className: 'instance-track ellipsis muted',
            title: ({ track }) => track,
            cell: ({ track, step }) => (step === null ? track : `${track}, step ${step}`),
          },
        ]}
      />
    </Section>
  );
}
