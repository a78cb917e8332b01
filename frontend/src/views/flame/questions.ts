/** What of flame graphs the URL asks for, and the parameters of the API that ask for it. Pure. */
import type { Parameters } from '../../api/client';
import type { Narrowing } from '../../api/queries';
import type { PageLocation } from '../../state/location';

export const SUBJECTS = ['calls', 'modules', 'memory'] as const;
export const MEASURES = ['host', 'device'] as const;
export const PHASES = ['all', 'forward', 'backward', 'rerun'] as const;
export const FRAMES = ['all', 'user', 'python', 'modules', 'operators'] as const;
export const DIRECTIONS = ['callees', 'callers'] as const;

export type Direction = (typeof DIRECTIONS)[number];

export interface Asked {
  readonly subject: (typeof SUBJECTS)[number];
  readonly measure: (typeof MEASURES)[number];
  readonly phase: (typeof PHASES)[number];
  readonly frames: (typeof FRAMES)[number];
  readonly direction: Direction;
  /** Memory's device; null: the one that held most. */
  readonly device: string | null;
  /** One function alone. */
  readonly name: string | null;
  /** The path of the frame that fills the picture; empty: all do. */
  readonly root: string;
  readonly isPerStep: boolean;
  /** All instances of a module's class are one frame. */
  readonly isByClass: boolean;
}

function oneOf<T extends string>(known: readonly T[], said: string | undefined): T {
  return known.find((each) => each === said) ?? (known[0] as T);
}

const PATH = /^[0-9a-z]{1,7}(\.[0-9a-z]{1,7})*$/;

/** Calls of all instances of a class are merged as those of all functions are; modules are told apart. */
export const usualInstances = (subject: Asked['subject']): 'merged' | 'apart' =>
  subject === 'modules' ? 'apart' : 'merged';

export function askedOf({ options }: PageLocation): Asked {
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
    isPerStep: options.per === 'step',
    isByClass: (options.instances ?? usualInstances(subject)) === 'merged',
  };
}

/** What is compared with: another recording, or another time of the same one. */
export type Baseline =
  | { readonly kind: 'recording'; readonly trace: string }
  | { readonly kind: 'time'; readonly time: Narrowing };

export interface Question {
  /** Of a recording: the path behind `traces/<trace>/`; of two: the whole path. */
  readonly path: string;
  readonly parameters: Parameters;
}

const usual = <T>(value: T, of: T): T | null => (value === of ? null : value);

function ofTree(asked: Asked): Parameters {
  const isTimed = asked.subject !== 'memory';
  return {
    measure: isTimed ? usual(asked.measure, 'host') : null,
    phase: asked.subject === 'modules' ? usual(asked.phase, 'all') : null,
    device: isTimed ? null : asked.device,
    frames: asked.subject === 'modules' ? null : usual(asked.frames, 'all'),
    by_class: asked.isByClass ? true : null,
  };
}

function ofReading(asked: Asked): Parameters {
  return {
    direction: usual(asked.direction, 'callees'),
    name: asked.name,
    root: usual(asked.root, ''),
  };
}

interface Times {
  readonly narrowing: Narrowing | null;
  readonly before: Narrowing | null;
}

/** What is asked of one recording. */
export function question(
  what: 'graph' | 'functions' | 'speedscope',
  asked: Asked,
  { narrowing, before }: Times,
): Question {
  return {
    path: `flame/${what}`,
    parameters: {
      subject: usual(asked.subject, 'calls'),
      ...ofTree(asked),
      ...(what === 'graph' ? ofReading(asked) : {}),
      per_step: asked.isPerStep && !narrowing && asked.subject !== 'memory' ? true : null,
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
      before_start_ns: before?.start_ns,
      before_end_ns: before?.end_ns,
    },
  };
}

/** The same of two recordings, of the steps of each. */
export function questionOfTwo(
  what: 'graph' | 'functions',
  asked: Asked,
  { trace, baseline }: { readonly trace: string; readonly baseline: string },
): Question {
  return {
    path: `flame/compared/${asked.subject}/${what}`,
    parameters: {
      trace,
      baseline,
      ...ofTree(asked),
      ...(what === 'graph' ? ofReading(asked) : {}),
    },
  };
}
