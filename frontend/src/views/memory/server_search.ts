/**
 * What of a table's search the server can do beforehand, where not all rows are sent: it finds a text in operator,
 * module or stack. It may find more than the table then shows, never less. Pure.
 */

/** One word, or several in quotes; a condition on one of the columns that the server looks into. */
const WORD = /^(?:"([^"]+)"|(?![\w-]+:(?!:))([^\s"/<>=]+))$/;
const CONDITION = /^(?:operator|op|module|function|stack):(?!:)(?:"([^"]+)"|([^\s"/<>=]+))$/;

export function searchedByServer(search: string): string | null {
  const found = WORD.exec(search.trim()) ?? CONDITION.exec(search.trim());
  return found?.[1] ?? found?.[2] ?? null;
}
