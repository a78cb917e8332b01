/** The details of the selected slice. */
import type { ReactNode } from 'react';
import type { Range } from '../../canvas/viewport';
import { count, duration, instant, plural, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { Button } from '../../widgets/button';
import { Copy } from '../../widgets/copy';
import { type Fact, Facts } from '../../widgets/facts';
import { Failure } from '../../widgets/failure';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { SourceLine } from '../../widgets/source_line';
import type { Picked } from './pick';
import { categoryLabel, Swatch, Time, trackLabel } from './slice_labels';
import { NO_EVENT } from './tiles';
import type { SelectedSlice } from './use_selected_slice';
import type { SliceDetails, Timeline } from './wire';

interface SelectionActions {
  readonly select: (event: number) => void;
  readonly fit: () => void;
  /** Selects the time of the slice on all tracks as an area. */
  readonly summarize: () => void;
  readonly zoomTo: (range: Range) => void;
}

interface SliceProps {
  readonly slice: SliceDetails;
  /** The drawn slice that merges it with others. */
  readonly merged: Picked | null;
  readonly timeline: Timeline;
  readonly actions: SelectionActions;
}

/** The slice as text, for copying. */
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
      All slices of this name <Icon name="arrow" size={13} />
    </Goto>
  );
}

function factsOf(slice: SliceDetails, timeline: Timeline): Fact[] {
  const { self_ns, child_count, device_ns, step, module } = slice;
  return [
    ['Duration', <Time key="duration" ns={slice.duration_ns} />],
    self_ns !== null &&
      child_count > 0 && [
        'Self',
        <span key="self">
          <Time ns={self_ns} />{' '}
          <span className="exact">excluding {plural(child_count, 'nested slice')}</span>
        </span>,
      ],
    device_ns !== null && ['On devices', <Time key="device" ns={device_ns} />],
    [
      'Start',
      <span key="start" title={quantityExact(slice.start_ns, 'ns')}>
        {instant(slice.start_ns)}
      </span>,
    ],
    ['Category', categoryLabel(timeline.categories, slice.category)],
    ['Track', trackLabel(timeline.tracks, slice.track)],
    step !== null && ['Step', count(step)],
    module !== null && ['Module', <code key="module">{module}</code>],
  ];
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
      <button type="button" className="link-button option flex" title={name} onClick={onSelect}>
        <span className="link-kind">{kind}</span>
        <span className="link-name ellipsis">{shortName(name)}</span>
        {note !== undefined && <span className="link-note">{note}</span>}
      </button>
    </li>
  );
}

/** The distance to the start of a linked slice: `12 µs later`. */
function distance(slice: SliceDetails, startNs: number): string {
  const ns = startNs - slice.start_ns;
  return ns === 0
    ? 'at the same time'
    : `${duration(Math.abs(ns))} ${ns > 0 ? 'later' : 'earlier'}`;
}

function Links({ slice, actions }: SliceProps): ReactNode {
  const { links, link_counts: counts } = slice;
  if (links.length === 0) return null;
  const more = Object.values(counts).reduce((sum, count) => sum + count, 0) - links.length;
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
            onSelect={() => actions.select(link.event)}
          />
        ))}
      </ul>
      {more > 0 && <p className="muted">and {count(more)} more</p>}
    </section>
  );
}

function Parents({ slice, actions }: SliceProps): ReactNode {
  const { parents, operator } = slice;
  const isParent = parents.some((parent) => parent.event === operator?.event);
  if (parents.length === 0 && operator === null) return null;
  const button = (kind: string, { name, event }: SliceDetails['parents'][number]): ReactNode => (
    <EventButton key={event} kind={kind} name={name} onSelect={() => actions.select(event)} />
  );
  return (
    <section>
      <h4>Called in</h4>
      <ul className="link-list">
        {operator && !isParent && button('operator', operator)}
        {parents.toReversed().map((parent) => button('', parent))}
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
      <h4>Arguments</h4>
      <Facts
        className="slice-facts"
        isGrid
        facts={slice.arguments.map(({ key, value, is_cut }) => [
          key,
          <span key={key}>
            <code>{value}</code>
            {is_cut && <span className="exact">… truncated</span>}
          </span>,
        ])}
      />
    </section>
  );
}

/** A slice that merges many events is never shown as one event. */
function Merged({ merged, actions }: Pick<SliceProps, 'actions'> & { merged: Picked }): ReactNode {
  const { startNs, endNs } = merged;
  return (
    <p className="slice-merged muted" role="note">
      One of {count(merged.count)} slices drawn as one: zoom in to separate them.{' '}
      <Button quiet onClick={() => actions.zoomTo({ start: startNs, end: endNs })}>
        Zoom to all {count(merged.count)}
      </Button>
    </p>
  );
}

function Slice(props: SliceProps): ReactNode {
  const { slice, merged, actions } = props;
  return (
    <div className="panel-body slice">
      <header className="slice-head wrap">
        <Swatch category={slice.category} name={slice.name} />
        <h3 title={slice.name}>{slice.name}</h3>
        <Copy text={() => asText(slice)} quiet={true} />
        <Button quiet onClick={actions.fit}>
          Fit
        </Button>
        <Button quiet title="All tracks during this slice" onClick={actions.summarize}>
          Summarize
        </Button>
        <TableLink slice={slice} />
      </header>
      {merged && <Merged merged={merged} actions={actions} />}
      <div>
        <Facts className="slice-facts" isGrid facts={factsOf(slice, props.timeline)} />
      </div>
      <div>
        <Links {...props} />
        <Parents {...props} />
      </div>
      <div>
        <Stack slice={slice} />
        <Arguments slice={slice} />
      </div>
    </div>
  );
}

interface DrawnProps {
  readonly picked: Picked;
  readonly name: string;
  readonly timeline: Timeline;
}

/** A drawn slice without details, such as an idle time, which no event stands for; its length is as exact as the screen. */
function Drawn({ picked, name, timeline }: DrawnProps): ReactNode {
  const isEvent = picked.event !== NO_EVENT;
  const category = timeline.categories[picked.category]?.label;
  const length = Math.max(1, Math.round(picked.endNs - picked.startNs));
  return (
    <div className="panel-body">
      <h3>{isEvent ? name : (category ?? name)}</h3>
      <Facts
        className="slice-facts"
        isGrid
        facts={[
          ['Duration', `≈ ${duration(length)}`],
          ['Start', `≈ ${instant(picked.startNs)}`],
          ['Track', trackLabel(timeline.tracks, picked.track)],
          isEvent && category !== undefined && ['Category', category],
          picked.count > 1 && [
            'Merges',
            `${plural(picked.count, isEvent ? 'slice' : 'idle time')}; zoom in`,
          ],
        ]}
      />
    </div>
  );
}

interface Props {
  readonly selected: SelectedSlice;
  readonly names: readonly string[];
  readonly timeline: Timeline;
  readonly actions: SelectionActions;
}

export function SelectionTab({ selected, names, timeline, actions }: Props): ReactNode {
  const { details, error, picked, merged } = selected;
  if (!selected.isSelected) {
    return (
      <p className="panel-body muted">
        Nothing is selected. Click a slice, or move between slices with the arrow keys; <kbd>?</kbd>{' '}
        lists all keys.
      </p>
    );
  }
  if (picked) return <Drawn picked={picked} name={names[picked.name] ?? ''} timeline={timeline} />;
  if (details) {
    return <Slice slice={details} merged={merged} timeline={timeline} actions={actions} />;
  }
  if (error) return <Failure error={error} what="The slice" />;
  return <p className="panel-body muted">Reading…</p>;
}
