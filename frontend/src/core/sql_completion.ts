/** Completion of table and column names in a query. Pure. */

export interface CompletionTable {
  readonly name: string;
  readonly title: string;
  readonly columns: readonly {
    /** In double quotes where SQL needs them. */
    readonly name: string;
    readonly unit: string;
    readonly meaning: string;
  }[];
}

export interface Suggestion {
  readonly text: string;
  /** The table's title, or the column's table. */
  readonly note: string;
  readonly meaning: string;
}

/** Suggestions for the text from `from` to the caret. */
export interface Completion {
  readonly from: number;
  readonly suggestions: readonly Suggestion[];
}

const NOTHING: Completion = { from: 0, suggestions: [] };
const MOST = 50;
/** Comments and texts, also unfinished ones. */
const NO_CODE = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)/g;
const WORD = /(?:([\w]+|"[^"]+")\s*\.\s*)?("?)([A-Za-z_][\w-]*)?$/;
const BEFORE_TABLE =
  /\b(?:from|join|describe|summarize|table)\s+(?:[\w"-]+(?:\s+(?:as\s+)?\w+)?\s*,\s*)*$/i;
const MENTIONED = /"([^"]+)"|([A-Za-z_]\w*)/g;
const ALIASES =
  /(?<=\b(?:from|join)\s+|,\s*)(?:"([^"]+)"|([A-Za-z_]\w*))\s+(?:as\s+)?([A-Za-z_]\w*)\b/gi;

const nameOf = (text: string): string =>
  text.replaceAll('"', '').replaceAll('-', '_').toLowerCase();

/** The query with comments and texts blanked, so that positions remain. */
const codeOf = (sql: string): string => sql.replace(NO_CODE, (text) => ' '.repeat(text.length));

/** The tables that a query names, in its order. */
export function mentionedTables(
  sql: string,
  tables: readonly CompletionTable[],
): readonly CompletionTable[] {
  const byName = new Map(tables.map((table) => [table.name, table]));
  const names = [...codeOf(sql).matchAll(MENTIONED)].map(([, quoted, plain]) =>
    nameOf(quoted ?? plain ?? ''),
  );
  return [...new Set(names)].flatMap((name) => byName.get(name) ?? []);
}

/** The table of a name or an alias. */
function tableOf(
  sql: string,
  qualifier: string,
  tables: readonly CompletionTable[],
): CompletionTable | undefined {
  const target = nameOf(qualifier);
  const byName = new Map(tables.map((table) => [table.name, table]));
  const alias = [...codeOf(sql).matchAll(ALIASES)].find(
    ([, quoted, plain, name]) =>
      nameOf(name ?? '') === target && byName.has(nameOf(quoted ?? plain ?? '')),
  );
  return byName.get(target) ?? (alias && byName.get(nameOf(alias[1] ?? alias[2] ?? '')));
}

const columnsOf = (table: CompletionTable): Suggestion[] =>
  table.columns.map(({ name, unit, meaning }) => ({
    text: name,
    note: unit === '' ? table.name : `${table.name}, ${unit}`,
    meaning,
  }));

const tableSuggestions = (tables: readonly CompletionTable[]): Suggestion[] =>
  tables.map(({ name, title }) => ({ text: name, note: 'table', meaning: title }));

/** Names that begin with the prefix, then those that contain it; each once. */
function matching(all: readonly Suggestion[], prefix: string): readonly Suggestion[] {
  const typed = nameOf(prefix);
  const once = [...new Map(all.map((item) => [item.text, item])).values()];
  const plain = (item: Suggestion): string => nameOf(item.text);
  const first = once.filter((item) => plain(item).startsWith(typed));
  const others = once.filter((item) => plain(item).indexOf(typed) > 0);
  return [...first, ...others].slice(0, MOST);
}

/**
 * Suggestions at the caret. Without a prefix there are some only after FROM, JOIN or a dot, or if the user requests
 * them.
 */
export function completionAt(
  sql: string,
  caret: number,
  tables: readonly CompletionTable[],
  isRequested = false,
): Completion {
  const before = sql.slice(0, caret);
  // A text or comment that is open at the caret would be blanked up to it.
  const code = codeOf(`${before}\u0001`);
  if (!code.endsWith('\u0001')) return NOTHING;
  const word = WORD.exec(code.slice(0, -1));
  const [, qualifier, quote = '', prefix = ''] = word ?? [];
  const from = caret - prefix.length - quote.length;
  const isAfterTableWord = BEFORE_TABLE.test(code.slice(0, from));
  if (prefix === '' && qualifier === undefined && !isAfterTableWord && !isRequested) return NOTHING;
  const rest = `${before.slice(0, from)} ${sql.slice(caret)}`;
  const table = qualifier === undefined ? undefined : tableOf(rest, qualifier, tables);
  if (qualifier !== undefined) {
    return table ? complete(from, matching(columnsOf(table), prefix), prefix) : NOTHING;
  }
  if (isAfterTableWord) return complete(from, matching(tableSuggestions(tables), prefix), prefix);
  const columns = mentionedTables(rest, tables).flatMap(columnsOf);
  return complete(from, matching([...columns, ...tableSuggestions(tables)], prefix), prefix);
}

/** Nothing, if the only suggestion is what is typed already. */
function complete(from: number, suggestions: readonly Suggestion[], prefix: string): Completion {
  const isTyped = suggestions.length === 1 && suggestions[0]?.text === prefix;
  return isTyped ? NOTHING : { from, suggestions };
}

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The line and column of a position in a text, from 0. */
export function positionOf(text: string, at: number): Position {
  const lines = text.slice(0, at).split('\n');
  return { line: lines.length - 1, column: lines.at(-1)?.length ?? 0 };
}
