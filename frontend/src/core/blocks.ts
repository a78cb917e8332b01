/**
 * The Markdown of stepscope's own pages as blocks: headings, paragraphs, lists, tables and fenced
 * code; the rest is text.
 */

export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | { readonly kind: 'code'; readonly language: string; readonly code: string }
  | { readonly kind: 'table'; readonly head: Row; readonly rows: readonly Row[] };

export type Row = readonly string[];

/** A piece of a line: text, code, strong text, or a link. */
export type Piece =
  | { readonly kind: 'text' | 'code' | 'strong'; readonly text: string }
  | { readonly kind: 'link'; readonly text: string; readonly address: string };

const HEADING = /^(#{1,6}) +(.+)$/;
const FENCE = /^```(\w*)$/;
const ITEM = /^- +(.+)$/;
const ROW = /^\|(.*)\|$/;
const RULE = /^\|(?: *:?-+:? *\|)+$/;
/** A vertical bar in a cell is written `\|`. */
const CELL = /(?:\\.|[^|\\])+/g;

const cells = (inner: string): Row =>
  (inner.match(CELL) ?? []).map((cell) => cell.replaceAll('\\|', '|').trim());

/** The number of consecutive lines of a form. */
function runOf(lines: readonly string[], from: number, isOne: (line: string) => boolean): number {
  let to = from;
  while (to < lines.length && isOne(lines[to] ?? '')) to += 1;
  return to - from;
}

const isPlain = (line: string): boolean =>
  line.trim() !== '' && ![HEADING, FENCE, ITEM, ROW].some((form) => form.test(line));

/** The block at a line, and its number of lines. */
function blockAt(lines: readonly string[], from: number): readonly [Block, number] {
  const line = lines[from] ?? '';
  const heading = HEADING.exec(line);
  if (heading) {
    return [{ kind: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' }, 1];
  }
  const fence = FENCE.exec(line);
  if (fence) {
    const count = runOf(lines, from + 1, (text) => text !== '```');
    const code = lines.slice(from + 1, from + 1 + count).join('\n');
    return [{ kind: 'code', language: fence[1] ?? '', code }, count + 2];
  }
  const [form, count] = ITEM.test(line)
    ? [ITEM, runOf(lines, from, (text) => ITEM.test(text))]
    : [ROW, runOf(lines, from, (text) => ROW.test(text))];
  const part = lines.slice(from, from + count);
  const inner = part.map((text) => form.exec(text)?.[1] ?? '');
  if (form === ITEM) return [{ kind: 'list', items: inner }, count];
  if (RULE.test(part[1] ?? '')) {
    const [head = [], , ...rows] = inner.map(cells);
    return [{ kind: 'table', head, rows }, count];
  }
  const taken = Math.max(1, count, runOf(lines, from, isPlain));
  return [{ kind: 'paragraph', text: lines.slice(from, from + taken).join(' ') }, taken];
}

export function blocksOf(text: string): readonly Block[] {
  const lines = text.split('\n').map((line) => line.trimEnd());
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at] === '') {
      at += 1;
      continue;
    }
    const [block, count] = blockAt(lines, at);
    blocks.push(block);
    at += count;
  }
  return blocks;
}

const PIECES = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)|<(https?:\/\/[^>\s]+)>/g;

/** Links to the web are links; other pages of the documentation are only named. */
function linked(text: string, address: string): Piece {
  if (/^https?:\/\//.test(address)) return { kind: 'link', text, address };
  return { kind: 'text', text: `${text} (${address.replace(/^(?:\.\.?\/)+/, '')})` };
}

export function piecesOf(line: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let done = 0;
  for (const match of line.matchAll(PIECES)) {
    if (match.index > done) pieces.push({ kind: 'text', text: line.slice(done, match.index) });
    const [all, code, strong, words, address, bare] = match;
    if (code !== undefined) pieces.push({ kind: 'code', text: code });
    else if (strong !== undefined) pieces.push({ kind: 'strong', text: strong });
    else if (bare !== undefined) pieces.push(linked(bare.replace(/^https?:\/\//, ''), bare));
    else pieces.push(linked(words ?? '', address ?? ''));
    done = match.index + all.length;
  }
  if (done < line.length) pieces.push({ kind: 'text', text: line.slice(done) });
  return pieces;
}
