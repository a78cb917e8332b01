/**
 * The search of a table: words in any text column, `/regex/`, and conditions on a column:
 * `shape:4096`, `stream:7`, `name:/gemm|conv/`, `calls:>100`, `mean:>=1ms`. All must match. Pure.
 */
import type { Column, Table } from '../../api/types.gen';
import { type Matcher, matcherOf } from '../../core/search';
import { isNumeric, type Unit } from '../../core/units';

type Compare = '<' | '>' | '<=' | '>=' | '=';

interface InWords {
  readonly kind: 'words';
  /** The searched columns; any of them may match. */
  readonly keys: readonly string[];
  readonly test: (text: string) => boolean;
}

interface InNumbers {
  readonly kind: 'numbers';
  readonly key: string;
  readonly test: (value: number) => boolean;
}

export type Condition = InWords | InNumbers;

export type Query =
  | { readonly kind: 'rows'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'invalid'; readonly message: string };

/** Short column names; the first column that the table has applies. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  shape: ['input_dims', 'shapes'],
  shapes: ['input_dims', 'shapes'],
  cat: ['category', 'kind', 'type', 'is_collective'],
  kind: ['kind', 'category'],
  stream: ['streams', 'stream'],
  device: ['devices', 'device'],
  op: ['operator', 'name'],
  calls: ['call_count', 'event_count'],
  total: ['total_ns', 'device_total_ns', 'host_total_ns'],
  self: ['device_self_ns', 'host_self_ns', 'self_ns'],
  mean: ['mean_ns', 'host_mean_ns'],
  p95: ['p95_ns', 'host_p95_ns'],
  max: ['max_ns', 'host_max_ns'],
  share: ['kernel_share', 'device_self_share', 'host_self_share'],
};

const plain = (text: string): string => text.toLowerCase().replaceAll(/[\s_]+/g, '-');

/** The column of a prefix: a short name, a key, or a label with dashes. */
export function columnNamed(table: Table, prefix: string): Column | undefined {
  const requested = plain(prefix);
  for (const key of ALIASES[requested] ?? []) {
    const result = table.columns.find((column) => column.key === key);
    if (result) return result;
  }
  return table.columns.find(
    (column) => plain(column.key) === requested || plain(column.label) === requested,
  );
}

/** Parts of a query; regular expressions and quoted text may contain spaces. */
const PART = /(?:[\w-]+:(?!:))?(?:\/(?:\\.|[^/\\])+\/[a-z]*(?=\s|$)|"[^"]*")|\S+/g;
const PREFIXED = /^([\w-]+):(?!:)(.+)$/s;
const NUMBER = /^(<=|>=|<|>|=)?\s*(-?[\d.]+(?:e[+-]?\d+)?)\s*([a-zµ%]*)$/i;
const UNITS: Readonly<Record<string, readonly [readonly Unit[], number]>> = {
  ns: [['ns'], 1],
  us: [['ns'], 1e3],
  µs: [['ns'], 1e3],
  ms: [['ns'], 1e6],
  s: [['ns'], 1e9],
  b: [['bytes', 'bytes/s'], 1],
  kb: [['bytes', 'bytes/s'], 1e3],
  mb: [['bytes', 'bytes/s'], 1e6],
  gb: [['bytes', 'bytes/s'], 1e9],
  kib: [['bytes', 'bytes/s'], 2 ** 10],
  mib: [['bytes', 'bytes/s'], 2 ** 20],
  gib: [['bytes', 'bytes/s'], 2 ** 30],
  '%': [['share'], 0.01],
  k: [['count'], 1e3],
  m: [['count'], 1e6],
};

const COMPARE: Readonly<Record<Compare, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '=': (a, b) => a === b,
};

const unquoted = (text: string): string =>
  text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;

function numbersCondition(column: Column, text: string): Condition | string {
  const parts = NUMBER.exec(text);
  const requested = Number(parts?.[2]);
  if (!parts || Number.isNaN(requested)) {
    return `${column.label} is a number: ${column.label.toLowerCase()}:>10`;
  }
  const unit = (parts[3] ?? '').toLowerCase();
  const scale = unit === '' ? undefined : UNITS[unit];
  if (unit !== '' && !scale?.[0].includes(column.unit)) {
    return `${column.label} is not measured in ${parts[3]}`;
  }
  const compare = COMPARE[(parts[1] ?? '=') as Compare];
  const limit = requested * (scale?.[1] ?? 1);
  return { kind: 'numbers', key: column.key, test: (value) => compare(value, limit) };
}

/** Lists such as `7, 20` match by item, not by substring. */
const isList = (column: Column): boolean => column.key === 'streams' || column.key === 'devices';

function wordsCondition(column: Column, text: string): Condition | string {
  if (isList(column) && !text.startsWith('/')) {
    const requested = text.trim();
    const test = (value: string): boolean =>
      value.split(',').some((item) => item.trim() === requested);
    return { kind: 'words', keys: [column.key], test };
  }
  return fromMatcher(matcherOf(text), [column.key]);
}

function fromMatcher(matcher: Matcher, keys: readonly string[]): Condition | string {
  if (matcher.kind === 'invalid') return `Not a regular expression: ${matcher.message}`;
  return {
    kind: 'words',
    keys,
    test: matcher.kind === 'all' ? () => true : matcher.test,
  };
}

/** Whether a column holds numbers, including identifiers. */
function holdsNumbers(table: Table, { key, unit }: Column): boolean {
  if (isNumeric(unit)) return true;
  const first = table.values[key]?.find((value) => value !== null && value !== undefined);
  return typeof first === 'number';
}

/** Columns that words without a prefix search. */
const searched = (table: Table): string[] =>
  table.columns.filter((column) => !holdsNumbers(table, column)).map((column) => column.key);

function conditionOf(table: Table, part: string): Condition | string | null {
  const [, prefix, value] = PREFIXED.exec(part) ?? [];
  if (prefix === undefined || value === undefined) return null;
  const column = columnNamed(table, prefix);
  if (!column) return prefix.toLowerCase() in ALIASES ? `No column ${prefix} in this table` : null;
  const requested = unquoted(value);
  return holdsNumbers(table, column)
    ? numbersCondition(column, requested)
    : wordsCondition(column, requested);
}

const REGEX = /^\/.+\/[a-z]*$/s;

/**
 * A text that all rows of a search contain, for the server to search in all rows of a table; null: there is none, or the
 * search has only conditions that the page tests.
 */
export function serverText(table: Table, search: string): string | null {
  const words: string[] = [];
  const ofColumns: string[] = [];
  for (const part of search.match(PART) ?? []) {
    const [, prefix = '', value = ''] = PREFIXED.exec(part) ?? [];
    const column = prefix === '' ? undefined : columnNamed(table, prefix);
    if (!column) words.push(part);
    else if (!holdsNumbers(table, column) && !isList(column)) ofColumns.push(unquoted(value));
  }
  const isOneText = ofColumns.length === 0 && words.join(' ').length === search.trim().length;
  const text = isOneText ? search.trim() : words.map(unquoted).join(' ');
  return [text, ...ofColumns].find((one) => one !== '' && !REGEX.test(one)) ?? null;
}

export function queryOf(table: Table, search: string): Query {
  const conditions: Condition[] = [];
  const words: string[] = [];
  for (const part of search.match(PART) ?? []) {
    const result = conditionOf(table, part);
    if (typeof result === 'string') return { kind: 'invalid', message: result };
    if (result) conditions.push(result);
    else words.push(part);
  }
  // Spaces between words are significant, as in `void at`.
  const text = conditions.length === 0 ? search.trim() : words.map(unquoted).join(' ');
  if (text !== '') {
    const result = fromMatcher(matcherOf(text), searched(table));
    if (typeof result === 'string') return { kind: 'invalid', message: result };
    conditions.push(result);
  }
  return { kind: 'rows', conditions };
}

const EXAMPLES: Readonly<Partial<Record<Unit, string>>> = {
  count: '>10',
  ns: '>1ms',
  bytes: '>1MiB',
  share: '>5%',
};

/** An example condition on a column of the table: calls, else the first numbers. */
export function exampleOf(table: Table): string | undefined {
  const column =
    columnNamed(table, 'calls') ?? table.columns.find(({ unit }) => unit in EXAMPLES) ?? null;
  return column ? `${plain(column.label)}:${EXAMPLES[column.unit] ?? ''}` : undefined;
}
