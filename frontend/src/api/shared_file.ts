/**
 * A shared file (`stepscope share`): the page with the responses that it shows, compressed. Requests are answered from
 * these; a response that the file does not hold is a refusal with the way to see it.
 */
import { answerFrom, STATUS } from './client';
import type { ApiError } from './types.gen';

/** The responses, by the key of their request: deflated, in Base64. */
export interface SharedFile {
  readonly version: string;
  /** The time of writing, for display. */
  readonly written: string;
  /** What the file leaves out, as sentences. */
  readonly notes: readonly string[];
  readonly responses: Readonly<Record<string, string>>;
  /** Statuses of the responses that are refusals. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Parameters that a response of the file does not depend on, by the end of the path. */
const IGNORED: Readonly<Record<string, readonly string[]>> = {
  'timeline/tiles': ['tracks'], // a tile holds all tracks
  'flame/graph': ['root'], // the page zooms in the whole graph
  'memory/allocations': ['sort', 'descending', 'search', 'limit'], // the page sorts and searches, too
};
const TABLE = /\/tables\/[^/]+$/;
const OF_TABLES = ['sort', 'descending', 'limit'];

function ignoredIn(path: string): readonly string[] {
  if (TABLE.test(path)) return OF_TABLES;
  return Object.entries(IGNORED).find(([end]) => path.endsWith(end))?.[1] ?? [];
}

/** The key of a request: its path, and its parameters in order, without those that do not matter. */
export function keyOf(address: string): string {
  const [path = '', query = ''] = address.split('?');
  const decoded = decodeURIComponent(path);
  const ignored = ignoredIn(decoded);
  const pairs = [...new URLSearchParams(query)]
    .filter(([name]) => !ignored.includes(name))
    .map(([name, value]) => `${name}=${value}`)
    .sort();
  return pairs.length === 0 ? decoded : `${decoded}?${pairs.join('&')}`;
}

async function inflated(text: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

/** Bytes per value of the columns of a tile, and which columns hold differences (`compressible` in Python). */
const COLUMN_BYTES = [4, 4, 4, 2, 2, 1, 1];
const DIFFERENCES = [1, 3];
const HEADER_AT = 8;

/** A tile of the timeline as the server sends it. */
function unpackedTile(packed: ArrayBuffer): ArrayBuffer {
  const bytes = new Uint8Array(packed);
  const length = new DataView(packed).getUint32(4, true);
  const header = JSON.parse(
    new TextDecoder().decode(bytes.subarray(HEADER_AT, HEADER_AT + length)),
  ) as { readonly slice_count: number };
  const count = header.slice_count;
  const tile = bytes.slice();
  const view = new DataView(tile.buffer);
  let at = Math.ceil((HEADER_AT + length) / 8) * 8;
  COLUMN_BYTES.forEach((size, column) => {
    for (let byte = 0; byte < size; byte += 1) {
      for (let row = 0; row < count; row += 1) {
        tile[at + row * size + byte] = bytes[at + byte * count + row] ?? 0;
      }
    }
    if (DIFFERENCES.includes(column)) summed(view, { at, size, count });
    at += size * count;
  });
  return tile.buffer;
}

interface ColumnPlace {
  readonly at: number;
  readonly size: number;
  readonly count: number;
}

/** Replaces differences by their sums, which wrap around as integers of that size do. */
function summed(view: DataView, { at, size, count }: ColumnPlace): void {
  let sum = 0;
  for (let row = 0; row < count; row += 1) {
    const here = at + row * size;
    if (size === 4) {
      sum = (sum + view.getUint32(here, true)) >>> 0;
      view.setUint32(here, sum, true);
    } else {
      sum = (sum + view.getUint16(here, true)) & 0xffff;
      view.setUint16(here, sum, true);
    }
  }
}

const TILES = /\/timeline\/tiles\?/;

const MISSING: ApiError = {
  code: 'not-in-file',
  message: 'This shared file does not hold this selection.',
  hint: 'To see it, open the trace with “stepscope serve” or TensorBoard.',
};

function refusal(): Response {
  return Response.json(MISSING, { headers: { [STATUS]: '404' } });
}

/** Answers requests from a file. */
export function sourceOf({ responses, statuses }: SharedFile) {
  return async (address: string): Promise<Response> => {
    const key = keyOf(address);
    const packed = responses[key];
    if (packed === undefined) return refusal();
    const status = statuses[key];
    const headers = new Headers(status === undefined ? [] : [[STATUS, String(status)]]);
    const body = await inflated(packed);
    return new Response(TILES.test(key) ? unpackedTile(body) : body, { headers });
  };
}

const element = document.getElementById('stepscope-file');

/** The file that the page is in; null elsewhere. */
export const sharedFile: SharedFile | null =
  element && (JSON.parse(element.textContent ?? '') as SharedFile);

if (sharedFile) answerFrom(sourceOf(sharedFile));
