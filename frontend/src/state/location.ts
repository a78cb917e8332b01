/** The location of the page as the URL's hash. Pure; the round trip is property-tested. */

export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

/** A time range in ns from the first event of the trace, without its end. */
export interface TimeRange {
  readonly startNs: number;
  readonly endNs: number;
}

/** The state of the page in a link. Null or empty is the default of the view. */
export interface PageLocation {
  readonly view: string;
  readonly run: string | null;
  readonly worker: string | null;
  readonly span: string | null;
  readonly group: string | null;
  readonly search: string;
  readonly sort: Sort | null;
  /** The filter of all views: a step or a time; the time takes precedence. */
  readonly step: number | null;
  readonly time: TimeRange | null;
  /** The number of the selected event in the file. */
  readonly event: number | null;
  /** The baseline of a comparison. */
  readonly baseRun: string | null;
  readonly baseWorker: string | null;
  readonly baseSpan: string | null;
  /** The rule of the open finding, or `none`. */
  readonly open: string | null;
  /** Further options of a view, by names of lower-case letters and dashes. */
  readonly options: Readonly<Record<string, string>>;
}

export const HOME: PageLocation = {
  view: 'advice',
  run: null,
  worker: null,
  span: null,
  group: null,
  search: '',
  sort: null,
  step: null,
  time: null,
  event: null,
  baseRun: null,
  baseWorker: null,
  baseSpan: null,
  open: null,
  options: {},
};

/** The view of a hash without any state: the page decides when it has the runs. */
export const LANDING = '';

const OPTION = 'o.';

type Pairs = readonly (readonly [string, string])[];

function toPairs(location: PageLocation): Pairs {
  const { sort, step, time, event } = location;
  const pairs: [string, string | null][] = [
    ['view', location.view],
    ['run', location.run],
    ['worker', location.worker],
    ['span', location.span],
    ['group', location.group],
    ['search', location.search],
    ['sort', sort && (sort.descending ? '-' : '+') + sort.key],
    ['step', step === null ? null : String(step)],
    ['time', time && `${time.startNs}-${time.endNs}`],
    ['event', event === null ? null : String(event)],
    ['base', location.baseRun],
    ['base-worker', location.baseWorker],
    ['base-span', location.baseSpan],
    ['open', location.open],
    ...Object.entries(location.options).map(([key, value]): [string, string] => [
      OPTION + key,
      value,
    ]),
  ];
  return pairs.filter(
    (pair): pair is [string, string] => pair[1] !== null && (pair[1] !== '' || pair[0] === 'view'),
  );
}

function parseSort(text: string | undefined): Sort | null {
  if (!text || text.length < 2) return null;
  return { key: text.slice(1), descending: text[0] === '-' };
}

function parseTime(text: string | undefined): TimeRange | null {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? '');
  const [startNs, endNs] = [Number(found?.[1]), Number(found?.[2])];
  return startNs < endNs ? { startNs, endNs } : null;
}

function parseNumber(text: string | undefined): number | null {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function fromPairs(pairs: Pairs): PageLocation {
  const found = new Map(pairs);
  return {
    view: found.get('view') ?? (pairs.length === 0 ? LANDING : HOME.view),
    run: found.get('run') || null,
    worker: found.get('worker') || null,
    span: found.get('span') || null,
    group: found.get('group') || null,
    search: found.get('search') ?? '',
    sort: parseSort(found.get('sort')),
    step: parseNumber(found.get('step')),
    time: parseTime(found.get('time')),
    event: parseNumber(found.get('event')),
    baseRun: found.get('base') || null,
    baseWorker: found.get('base-worker') || null,
    baseSpan: found.get('base-span') || null,
    open: found.get('open') || null,
    options: Object.fromEntries(
      [...found]
        .filter(([key, value]) => key.startsWith(OPTION) && value !== '')
        .map(([key, value]) => [key.slice(OPTION.length), value]),
    ),
  };
}

const encode = (text: string): string => encodeURIComponent(text.toWellFormed());

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an unescaped `%`
  }
}

function parts(hash: string): string[] {
  return hash.replace(/^#/, '').split('&').filter(Boolean);
}

function pairsOf(hash: string, prefix: string): Pairs {
  return parts(hash)
    .filter((part) => part.startsWith(prefix) && part.includes('='))
    .map((part) => {
      const at = part.indexOf('=');
      return [decode(part.slice(prefix.length, at)), decode(part.slice(at + 1))] as const;
    });
}

/** The hash of the stand-alone page: `#view=advice&run=…`. */
export function formatHash(location: PageLocation): string {
  return `#${toPairs(location)
    .map(([key, value]) => `${key}=${encode(value)}`)
    .join('&')}`;
}

export function parseHash(hash: string): PageLocation {
  return fromPairs(pairsOf(hash, ''));
}

/**
 * TensorBoard's hash with the page's part: `#stepscope&p.stepscope.view=advice`; other parts are
 * kept.
 */
export function formatHostHash(plugin: string, location: PageLocation, present: string): string {
  const prefix = `p.${plugin}.`;
  const others = parts(present).filter((part, at) => at > 0 && !part.startsWith(prefix));
  const ours = toPairs(location).map(([key, value]) => `${prefix}${key}=${encode(value)}`);
  return `#${[plugin, ...others, ...ours].join('&')}`;
}

/** The page's part of TensorBoard's hash; null if another plugin is shown, or if there is none. */
export function parseHostHash(plugin: string, hash: string): PageLocation | null {
  if (!isHostHashOf(plugin, hash)) return null;
  const pairs = pairsOf(hash, `p.${plugin}.`);
  return pairs.length === 0 ? null : fromPairs(pairs);
}

/** Whether TensorBoard shows this plugin, or has not written its hash yet. */
export function isHostHashOf(plugin: string, hash: string): boolean {
  const shown = parts(hash)[0];
  return shown === undefined || shown === plugin;
}
