/** The simulated changes: in the URL, as parameters of a request, as a command. Pure. */
import type { WhatIfQuery } from '../../api/types.gen';
import { shellWord } from '../../core/shell_word';
import type { OptionChanges } from '../../state/option';

export type Target = 'kernels' | 'operators';

export interface Scale {
  readonly target: Target;
  /** A glob pattern of names. */
  readonly pattern: string;
  readonly factor: number;
}

export interface Changes {
  readonly host: number;
  readonly device: number;
  readonly hasNoWaits: boolean;
  readonly scales: readonly Scale[];
  /** Processes that load batches; null: as recorded. */
  readonly workers: number | null;
  /** Cores for the training loop and its workers; null: as recorded. */
  readonly cores: number | null;
  /** Rules whose findings are fixed. */
  readonly fixes: readonly string[];
}

export const UNCHANGED: Changes = {
  host: 1,
  device: 1,
  hasNoWaits: false,
  scales: [],
  workers: null,
  cores: null,
  fixes: [],
};

/** The limits of the API. */
export const MOST_FACTOR = 100;
export const MOST_SCALES = 50;
const DECIMALS = 1e4;

/** The factor in a text; null if there is none, or if the API would refuse it. */
export function factorOf(text: string): number | null {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= MOST_FACTOR)) return null;
  return Math.round(value * DECIMALS) / DECIMALS;
}

export const MOST_WORKERS = 1000;

/** The number of workers or cores in a text; null if there is none. */
export function wholeOf(text: string | undefined): number | null {
  const value = Number(text);
  return text && Number.isInteger(value) && value >= 1 && value <= MOST_WORKERS ? value : null;
}

const SCALE = /^(kernels|operators):(.+)=([^=]+)$/;

function scaleOf(text: string): Scale | null {
  const [, target, pattern, number = ''] = SCALE.exec(text) ?? [];
  const factor = factorOf(number);
  if (!pattern || factor === null) return null;
  return { target: target as Target, pattern, factor };
}

const textOf = ({ target, pattern, factor }: Scale): string => `${target}:${pattern}=${factor}`;

/** Names never have line breaks; they may have all other characters. */
const SEPARATOR = '\n';

export function changesOf(options: Readonly<Record<string, string>>): Changes {
  return {
    host: factorOf(options.host ?? '') ?? 1,
    device: factorOf(options.device ?? '') ?? 1,
    hasNoWaits: options['no-waits'] === 'yes',
    scales: (options.scale ?? '')
      .split(SEPARATOR)
      .flatMap((text) => scaleOf(text) ?? [])
      .slice(0, MOST_SCALES),
    workers: wholeOf(options.workers),
    cores: wholeOf(options.cores),
    fixes: [...new Set((options.fix ?? '').split(',').filter(Boolean))].slice(0, MOST_SCALES),
  };
}

/** The options of the URL; defaults are null. */
export function optionsOf(changes: Changes): OptionChanges {
  const { host, device, hasNoWaits, scales, workers, cores, fixes } = changes;
  return {
    host: host === 1 ? null : String(host),
    device: device === 1 ? null : String(device),
    'no-waits': hasNoWaits ? 'yes' : null,
    scale: scales.map(textOf).join(SEPARATOR),
    workers: workers === null ? null : String(workers),
    cores: cores === null ? null : String(cores),
    fix: fixes.join(','),
  };
}

/** A query without defaults. */
export type Parameters = { readonly [Name in keyof WhatIfQuery]-?: WhatIfQuery[Name] | null };

export function parametersOf({ hasNoWaits, scales, fixes, ...others }: Changes): Parameters {
  return {
    ...others,
    no_waits: hasNoWaits,
    scale: scales.map(textOf),
    fix: [...fixes],
  };
}

export const isUnchanged = (changes: Changes): boolean =>
  Object.values(optionsOf(changes)).every((value) => value === null || value === '');

/** The changes with another scale, halved at first; one with the same names is not added twice. */
export function withScale(changes: Changes, target: Target, pattern: string): Changes {
  const { scales } = changes;
  const isThere = scales.some((scale) => scale.target === target && scale.pattern === pattern);
  if (isThere || scales.length >= MOST_SCALES) return changes;
  return { ...changes, scales: [...scales, { target, pattern, factor: 0.5 }] };
}

/** The same simulation on the command line. */
export function commandOf(changes: Changes, file: string): string {
  const { host, device, hasNoWaits, scales, workers, cores, fixes } = changes;
  return [
    `stepscope whatif ${shellWord(file)}`,
    ...(fixes.length === 0 ? [] : [`--fix ${fixes.join(',')}`]),
    ...(host === 1 ? [] : [`--host ${host}`]),
    ...(device === 1 ? [] : [`--device ${device}`]),
    ...scales.map((scale) => `--scale ${shellWord(textOf(scale))}`),
    ...(hasNoWaits ? ['--no-waits'] : []),
    ...(workers === null ? [] : [`--workers ${workers}`]),
    ...(cores === null ? [] : [`--cores ${cores}`]),
  ].join(' ');
}

/** A factor in words: `30 % less time`. */
export function factorWords(factor: number): string {
  if (factor === 1) return 'as recorded';
  if (factor === 0) return 'no time';
  const percent = Number((Math.abs(factor - 1) * 100).toPrecision(3));
  return factor < 1 ? `${percent} % less time` : `${percent} % more time`;
}
