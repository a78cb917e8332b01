/** The settings of a flame graph in the URL, and the API requests for them. Pure. */
import type { ParametersOf } from '../../api/client';
import type { Narrowing } from '../../api/queries';
import type { PageLocation } from '../../state/location';

export const SUBJECTS = ['calls', 'modules', 'memory'] as const;
export const MEASURES = ['host', 'device'] as const;
export const PHASES = ['all', 'forward', 'backward', 'rerun'] as const;
export const FRAMES = ['all', 'user', 'python', 'modules', 'operators'] as const;
export const DIRECTIONS = ['callees', 'callers'] as const;

export type Direction = (typeof DIRECTIONS)[number];

export interface FlameSettings {
  readonly subject: (typeof SUBJECTS)[number];
  readonly measure: (typeof MEASURES)[number];
  readonly phase: (typeof PHASES)[number];
  readonly frames: (typeof FRAMES)[number];
  readonly direction: Direction;
  /** The device of memory; null: the one with the highest peak. */
  readonly device: string | null;
  /** The only function to show. */
  readonly name: string | null;
  /** The path of the zoomed frame; empty: none. */
  readonly root: string;
  /** The only thread of calls, as `pid/tid`; null: all. */
  readonly thread: string | null;
  /** Whether the time is hidden in which the host waits. */
  readonly hidesWaits: boolean;
  readonly isPerStep: boolean;
  /** Whether all instances of a module class are one frame. */
  readonly isByClass: boolean;
}

function oneOf<T extends string>(values: readonly T[], text: string | undefined): T {
  return values.find((value) => value === text) ?? (values[0] as T);
}

const PATH = /^[0-9a-z]{1,7}(\.[0-9a-z]{1,7})*$/;

/** By default, instances of a class are merged, except in the graph of modules. */
export const defaultInstances = (subject: FlameSettings['subject']): 'merged' | 'apart' =>
  subject === 'modules' ? 'apart' : 'merged';

export function settingsOf({ options }: PageLocation): FlameSettings {
  const subject = oneOf(SUBJECTS, options.of);
  return {
    subject,
    measure: oneOf(MEASURES, options.measure),
    phase: oneOf(PHASES, options.phase),
    frames: oneOf(FRAMES, options.frames),
    direction: oneOf(DIRECTIONS, options.direction),
    device: options.device ?? null,
    name: options.name ?? null,
    root: PATH.test(options.root ?? '') ? (options.root ?? '') : '',
    thread: subject === 'calls' ? (options.thread ?? null) : null,
    hidesWaits: options.waits === 'hidden',
    isPerStep: options.per === 'step',
    isByClass: (options.instances ?? defaultInstances(subject)) === 'merged',
  };
}

/** The baseline: another trace, or another time of the same one. */
export type Baseline =
  | { readonly kind: 'trace'; readonly trace: string }
  | { readonly kind: 'time'; readonly time: Narrowing };

export type FlameData = 'graph' | 'functions';

export interface FlameRequest<W extends FlameData | 'speedscope'> {
  /** The path of one trace; a comparison of two has the same response. */
  readonly path: `traces/{trace}/flame/${W}`;
  readonly parameters: Partial<ParametersOf<'traces/{trace}/flame/graph'>>;
}

const unlessDefault = <T>(value: T, of: T): T | null => (value === of ? null : value);

/** Waits have names only in the graph of calls, and take no time of a device. */
export const hasWaits = ({ subject, measure }: FlameSettings): boolean =>
  subject === 'calls' && measure === 'host';

function treeParameters(settings: FlameSettings): FlameRequest<'graph'>['parameters'] {
  const isTimed = settings.subject !== 'memory';
  return {
    measure: isTimed ? unlessDefault(settings.measure, 'host') : null,
    phase: settings.subject === 'modules' ? unlessDefault(settings.phase, 'all') : null,
    device: isTimed ? null : settings.device,
    frames: settings.subject === 'modules' ? null : unlessDefault(settings.frames, 'all'),
    by_class: settings.isByClass ? true : null,
    without_waits: settings.hidesWaits && hasWaits(settings) ? true : null,
  };
}

function pathParameters(settings: FlameSettings): FlameRequest<'graph'>['parameters'] {
  return {
    direction: unlessDefault(settings.direction, 'callees'),
    name: settings.name,
    root: unlessDefault(settings.root, ''),
  };
}

interface Times {
  readonly narrowing: Narrowing | null;
  readonly before: Narrowing | null;
}

export function requestOf<W extends FlameData | 'speedscope'>(
  what: W,
  settings: FlameSettings,
  { narrowing, before }: Times,
): FlameRequest<W> {
  return {
    path: `traces/{trace}/flame/${what}`,
    parameters: {
      subject: unlessDefault(settings.subject, 'calls'),
      ...treeParameters(settings),
      ...(what === 'graph' ? pathParameters(settings) : {}),
      thread: settings.thread,
      per_step: settings.isPerStep && !narrowing && settings.subject !== 'memory' ? true : null,
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
      before_start_ns: before?.start_ns,
      before_end_ns: before?.end_ns,
    },
  };
}

/** The request for two traces, over the steps of each. */
export function comparedRequest<W extends FlameData>(
  what: W,
  settings: FlameSettings,
  traces: { readonly trace: string; readonly baseline: string },
): FlameRequest<W> {
  const path: `flame/compared/${FlameSettings['subject']}/${FlameData}` = `flame/compared/${settings.subject}/${what}`;
  return {
    path: path as unknown as FlameRequest<W>['path'],
    parameters: {
      ...traces,
      ...treeParameters(settings),
      ...(what === 'graph' ? pathParameters(settings) : {}),
    },
  };
}
