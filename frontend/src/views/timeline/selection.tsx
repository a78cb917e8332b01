/** Everything that is known of the selected slice. */
import type { ReactNode } from 'react';
import type { Range } from '../../canvas/viewport';
import { count, duration, instant, plural, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { Copy } from '../../widgets/copy';
import { Failure } from '../../widgets/failure';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { SourceLine } from '../../widgets/source_line';
import type { Picked } from './pick';
import { categoryLabel, Swatch, Time, trackLabel } from './slice_words';
import type { SliceDetails, Timeline } from './wire';

export interface SelectionActs {
  readonly select: (event: number) => void;
  readonly fit: () => void;
  readonly zoomTo: (range: Range) => void;
}

interface SliceProps {
  readonly slice: SliceDetails;
  /** What it was clicked as, where it is drawn together with others. */
  readonly merged?: Picked | null;
  readonly timeline: Timeline;
  readonly acts: SelectionActs;
}

/** All of it as text. */
export function asText(slice: SliceDetails): string {
  const lines = [
    slice.name,
    `category: ${slice.category}`,
    `start: ${quantityExact(slice.start_ns, 'ns')}`,
    `duration: ${quantityExact(slice.duration_ns, 'ns')}`,
    ...(slice.self_ns === null ? [] : [`self: ${quantityExact(slice.self_ns, 'ns')}`]),
    ...slice.arguments.map(({ key, value }) => `${key}: ${value}`),
    ...slice.stack.map((frame) => `  ${frame.file}(${frame.line}): ${frame.function}`),
  ];
  return `${lines.join('\n')}\n`;
}

const VIEWS: Readonly<Record<string, string>> = {
  cpu: 'operators',
  kernel: 'kernels',
  communication: 'kernels',
};

function TableLink({ slice }: { readonly slice: SliceDetails }): ReactNode {
  const view = VIEWS[slice.category];
  if (view === undefined) return null;
  return (
    <Goto to={{ view, search: slice.name }} className="button quiet">
      All of this name <Icon name="arrow" size={13} />
    </Goto>
  );
}

function Facts({ slice, timeline }: SliceProps): ReactNode {
  const facts: [string, ReactNode][] = [
    ['Duration', <Time key="duration" ns={slice.duration_ns} />],
    [
      'Start',
      <span key="start" title={quantityExact(slice.start_ns, 'ns')}>
        {instant(slice.start_ns)}
      </span>,
    ],
  ];
  if (slice.self_ns !== null && slice.child_count > 0) {
    const within = `without the ${plural(slice.child_count, 'slice')} within it`;
    facts.splice(1, 0, [
      'Self',
      <span key="self">
        <Time ns={slice.self_ns} /> <span className="exact">{within}</span>
      </span>,
    ]);
  }
  if (slice.device_ns !== null) {
    facts.splice(2, 0, ['On devices', <Time key="device" ns={slice.device_ns} />]);
  }
  facts.push(['Category', categoryLabel(timeline.categories, slice.category)]);
  facts.push(['Track', trackLabel(timeline.tracks, slice.track)]);
  if (slice.step !== null) facts.push(['Step', count(slice.step)]);
  if (slice.module !== null) facts.push(['Module', <code key="module">{slice.module}</code>]);
  return (
    <dl className="slice-facts">
      {facts.map(([label, value]) => (
        <div key={label} style={{ display: 'contents' }}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface EventButtonProps {
  readonly kind: string;
  readonly name: string;
  readonly note?: string;
  readonly onSelect: () => void;
}

function EventButton({ kind, name, note, onSelect }: EventButtonProps): ReactNode {
  return (
    <li>
      <button type="button" className="link-button" title={name} onClick={onSelect}>
        <span className="link-kind">{kind}</span>
        <span className="link-name">{shortName(name)}</span>
        {note !== undefined && <span className="link-note">{note}</span>}
      </button>
    </li>
  );
}

/** How far away a linked slice begins: `12 µs later`. */
function distance(slice: SliceDetails, startNs: number): string {
  const ns = startNs - slice.start_ns;
  return ns === 0 ? 'at once' : `${duration(Math.abs(ns))} ${ns > 0 ? 'later' : 'earlier'}`;
}

function Links({ slice, acts }: SliceProps): ReactNode {
  const { links, link_counts: counts } = slice;
  if (links.length === 0) return null;
  const more = Object.values(counts).reduce((sum, each) => sum + each, 0) - links.length;
  return (
    <section>
      <h4>Linked</h4>
      <ul className="link-list">
        {links.map((link) => (
          <EventButton
            key={`${link.kind} ${link.event}`}
            kind={link.kind}
            name={link.name}
            note={`${duration(link.duration_ns)}, ${distance(slice, link.start_ns)}`}
            onSelect={() => acts.select(link.event)}
          />
        ))}
      </ul>
      {more > 0 && <p className="panel-hint">and {count(more)} more</p>}
    </section>
  );
}

function Around({ slice, acts }: SliceProps): ReactNode {
  const { parents, operator } = slice;
  const isWithin = parents.some((parent) => parent.event === operator?.event);
  if (parents.length === 0 && operator === null) return null;
  return (
    <section>
      <h4>Within</h4>
      <ul className="link-list">
        {operator && !isWithin && (
          <EventButton
            kind="operator"
            name={operator.name}
            onSelect={() => acts.select(operator.event)}
          />
        )}
        {parents.toReversed().map((parent) => (
          <EventButton
            key={parent.event}
            kind=""
            name={parent.name}
            onSelect={() => acts.select(parent.event)}
          />
        ))}
      </ul>
    </section>
  );
}

const STACK_OF: Readonly<Record<string, string>> = {
  launch: ' of the launch',
  forward: ' of the forward call',
};

function Stack({ slice }: { readonly slice: SliceDetails }): ReactNode {
  if (slice.stack.length === 0) return null;
  return (
    <section>
      <h4>Python stack{STACK_OF[slice.stack_of] ?? ''}, innermost first</h4>
      <ol className="stack-list">
        {slice.stack.toReversed().map((frame, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a function that calls itself is there twice
          <li key={`${at} ${frame.function}`}>
            {frame.file === '' ? (
              <span className="mono">{frame.function}</span>
            ) : (
              <SourceLine path={frame.file} line={frame.line} of={frame.function} />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Arguments({ slice }: { readonly slice: SliceDetails }): ReactNode {
  if (slice.arguments.length === 0) return null;
  return (
    <section>
      <h4>As recorded</h4>
      <dl className="slice-facts">
        {slice.arguments.map(({ key, value, is_cut }) => (
          <div key={key} style={{ display: 'contents' }}>
            <dt>{key}</dt>
            <dd>
              <code>{value}</code>
              {is_cut && <span className="exact">… cut</span>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** A slice that stands for many is never shown as if it were one event. */
function Merged({
  merged,
  acts,
}: {
  readonly merged: Picked;
  readonly acts: SelectionActs;
}): ReactNode {
  const { startNs, endNs } = merged;
  return (
    <p className="slice-merged panel-hint" role="note">
      One of {count(merged.count)} that were drawn together here: zoom in to tell them apart.{' '}
      <button
        type="button"
        className="button quiet"
        onClick={() => acts.zoomTo({ start: startNs, end: endNs })}
      >
        Zoom to all {count(merged.count)}
      </button>
    </p>
  );
}

function Slice(props: SliceProps): ReactNode {
  const { slice, merged, acts } = props;
  return (
    <div className="panel-body slice">
      <header className="slice-head">
        <Swatch category={slice.category} name={slice.name} />
        <h3 title={slice.name}>{slice.name}</h3>
        <Copy text={() => asText(slice)} quiet={true} />
        <button type="button" className="button quiet" onClick={acts.fit}>
          Fit
        </button>
        <TableLink slice={slice} />
      </header>
      {merged && <Merged merged={merged} acts={acts} />}
      <div>
        <Facts {...props} />
      </div>
      <div>
        <Links {...props} />
        <Around {...props} />
      </div>
      <div>
        <Stack slice={slice} />
        <Arguments slice={slice} />
      </div>
    </div>
  );
}

interface IdleProps {
  readonly picked: Picked;
  readonly name: string;
  readonly timeline: Timeline;
}

/** A time that is no event of the file: why a device did nothing. Its length is as exact as the screen. */
function Idle({ picked, name, timeline }: IdleProps): ReactNode {
  const length = Math.max(1, Math.round(picked.endNs - picked.startNs));
  return (
    <div className="panel-body">
      <h3>{timeline.categories[picked.category]?.label ?? name}</h3>
      <dl className="slice-facts">
        <dt>Duration</dt>
        <dd>≈ {duration(length)}</dd>
        <dt>Start</dt>
        <dd>≈ {instant(picked.startNs)}</dd>
        <dt>Track</dt>
        <dd>{trackLabel(timeline.tracks, picked.track)}</dd>
        {picked.count > 1 && (
          <>
            <dt>Stands for</dt>
            <dd>{plural(picked.count, 'time')}; come nearer to see each</dd>
          </>
        )}
      </dl>
    </div>
  );
}

interface Props {
  readonly details: SliceDetails | undefined;
  readonly error: Error | null;
  readonly picked: Picked | null;
  readonly merged: Picked | null;
  readonly isChosen: boolean;
  readonly names: readonly string[];
  readonly timeline: Timeline;
  readonly acts: SelectionActs;
}

function NothingChosen(): ReactNode {
  return (
    <p className="panel-body panel-hint">
      Nothing is selected. Click a slice, or go through slices with the arrow keys; <kbd>?</kbd>{' '}
      lists all keys.
    </p>
  );
}

export function SelectionTab(props: Props): ReactNode {
  const { details, error, picked, merged, isChosen, names, timeline, acts } = props;
  if (!isChosen) return <NothingChosen />;
  if (picked) return <Idle picked={picked} name={names[picked.name] ?? ''} timeline={timeline} />;
  if (details) return <Slice slice={details} merged={merged} timeline={timeline} acts={acts} />;
  if (error) return <Failure error={error} what="The slice" />;
  return <p className="panel-body panel-hint">Reading…</p>;
}
