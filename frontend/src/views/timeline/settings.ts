/** The settings of the timeline to and from the options of the URL. Pure; the round trip is property-tested. */
import type { Range } from '../../canvas/viewport';

export type Options = Readonly<Record<string, string>>;

export const TABS = ['selection', 'area', 'search', 'findings', 'table'] as const;
export type Tab = (typeof TABS)[number];

/** A time range of some tracks; an empty list means all tracks. */
export interface Area extends Range {
  readonly tracks: readonly number[];
}

export interface Settings {
  /** The visible range; null: the whole trace. */
  readonly at: Range | null;
  readonly pinned: readonly number[];
  /** Tracks opened or collapsed by the user. */
  readonly toggled: readonly number[];
  readonly hidden: readonly number[];
  /** Hidden kinds of tracks. */
  readonly kinds: readonly string[];
  /** A text that the labels of tracks must contain. */
  readonly filter: string;
  /** Moved tracks, among siblings. */
  readonly order: readonly number[];
  /** Marked times, ns. */
  readonly marks: readonly number[];
  /** The tab below the tracks; null: the first. */
  readonly tab: Tab | null;
  /** Whether the panel below the tracks is hidden. */
  readonly isPanelShut: boolean;
  readonly area: Area | null;
}

const LONGEST_LIST = 500;

function numbers(text: string | undefined): number[] {
  const parts = (text ?? '').split('.').filter((part) => /^\d{1,15}$/.test(part));
  return parts.slice(0, LONGEST_LIST).map(Number);
}

function range(text: string | undefined): Range | null {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? '');
  const [start, end] = [Number(match?.[1]), Number(match?.[2])];
  return start < end ? { start, end } : null;
}

const tabOf = (text: string | undefined): Tab | null => TABS.find((tab) => tab === text) ?? null;

function areaOf(options: Options): Area | null {
  const match = range(options.area);
  return match && { ...match, tracks: numbers(options['area-tracks']) };
}

export function parseSettings(options: Options): Settings {
  return {
    at: range(options.at),
    pinned: numbers(options.pin),
    toggled: numbers(options.toggle),
    hidden: numbers(options.hide),
    kinds: (options.kinds ?? '').split('.').filter(Boolean),
    filter: options.tracks ?? '',
    order: numbers(options.order),
    marks: numbers(options.marks),
    tab: tabOf(options.tab),
    isPanelShut: options.panel === 'shut',
    area: areaOf(options),
  };
}

const rangeText = (value: Range | null): string =>
  value ? `${Math.max(0, Math.floor(value.start))}-${Math.ceil(value.end)}` : '';

const WRITERS: {
  readonly [K in keyof Settings]: (value: Settings[K]) => Options;
} = {
  at: (value) => ({ at: rangeText(value) }),
  pinned: (value) => ({ pin: value.join('.') }),
  toggled: (value) => ({ toggle: value.join('.') }),
  hidden: (value) => ({ hide: value.join('.') }),
  kinds: (value) => ({ kinds: value.join('.') }),
  filter: (value) => ({ tracks: value }),
  order: (value) => ({ order: value.join('.') }),
  marks: (value) => ({ marks: value.map(Math.round).join('.') }),
  tab: (value) => ({ tab: value ?? '' }),
  isPanelShut: (value) => ({ panel: value ? 'shut' : '' }),
  area: (value) => ({ area: rangeText(value), 'area-tracks': value?.tracks.join('.') ?? '' }),
};

/** The options with some settings changed; an empty one is left out of the URL. */
export function withSettings(options: Options, patch: Partial<Settings>): Options {
  const written = Object.entries(patch).map(([key, value]) =>
    (WRITERS[key as keyof Settings] as (value: unknown) => Options)(value),
  );
  const merged: Options = Object.assign({}, options, ...written);
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== ''));
}

/** A list with an item added, or removed if it was there. */
export const toggledIn = <T>(list: readonly T[], item: T): T[] =>
  list.includes(item) ? list.filter((entry) => entry !== item) : [...list, item];
