import { deflateSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { encodeTile } from '../../tests/timeline_tiles';
import { answerFrom, api, fromServer, type RequestError } from './client';
import { keyOf, type SharedFile, sourceOf } from './shared_file';

const packed = (body: string | Uint8Array): string => deflateSync(body).toString('base64');

/** A tile as `compressible` in Python writes it: differences of events and positions, bytes of equal weight together. */
function compressible(tile: ArrayBuffer, count: number): Uint8Array {
  const plain = new Uint8Array(tile);
  const view = new DataView(tile);
  const out = plain.slice();
  let at = plain.length - 18 * count;
  [4, 4, 4, 2, 2, 1, 1].forEach((size, column) => {
    const value = (row: number): number => {
      if (row < 0) return 0;
      if (size === 4) return view.getUint32(at + row * 4, true);
      return size === 2 ? view.getUint16(at + row * 2, true) : view.getUint8(at + row);
    };
    for (let row = 0; row < count; row += 1) {
      const before = column === 1 || column === 3 ? value(row - 1) : 0;
      const written = (value(row) - before) >>> 0;
      for (let byte = 0; byte < size; byte += 1) {
        out[at + byte * count + row] = (written >>> (8 * byte)) & 0xff;
      }
    }
    at += size * count;
  });
  return out;
}

const fileOf = (responses: Record<string, unknown>, statuses = {}): SharedFile => ({
  version: '1',
  written: 'today',
  notes: [],
  responses: Object.fromEntries(
    Object.entries(responses).map(([key, body]) => [key, packed(JSON.stringify(body))]),
  ),
  statuses,
});

const { signal } = new AbortController();

describe('the key of a request', () => {
  it.each([
    ['runs', 'runs'],
    ['traces/t/flame/graph?root=1.2&by_class=true', 'traces/t/flame/graph?by_class=true'],
    [
      'traces/t/timeline/tiles?tracks=1%2C2&tile=0&level=3',
      'traces/t/timeline/tiles?level=3&tile=0',
    ],
    ['traces/t/tables/steps?limit=5&sort=a&descending=true', 'traces/t/tables/steps'],
    ['runs/r/tables/ranks?limit=5', 'runs/r/tables/ranks'],
    [
      'traces/t/operators/details?name=aten%3A%3Amm+a&label=',
      'traces/t/operators/details?label=&name=aten::mm a',
    ],
    ['traces/t/what-if?scale=b&scale=a&host=1', 'traces/t/what-if?host=1&scale=a&scale=b'],
  ])('of %s is %s', (address, key) => {
    expect(keyOf(address)).toBe(key);
  });
});

describe('a shared file', () => {
  afterEach(() => {
    answerFrom(fromServer);
    vi.unstubAllGlobals();
  });

  it('answers what it holds, without a server', async () => {
    const server = vi.fn();
    vi.stubGlobal('fetch', server);
    answerFrom(sourceOf(fileOf({ 'traces/t/names': { names: ['é'] } })));
    expect(await api.get('traces/{trace}/names', { trace: 't' }, signal)).toEqual({ names: ['é'] });
    expect(server).not.toHaveBeenCalled();
  });

  it('passes on the refusals of the server', async () => {
    const refusal = { code: 'not-recorded', message: 'No memory.', hint: 'profile_memory=True' };
    answerFrom(sourceOf(fileOf({ 'traces/t/names': refusal }, { 'traces/t/names': 422 })));
    const error = await api
      .get('traces/{trace}/names', { trace: 't' }, signal)
      .catch((reason: RequestError) => reason);
    expect(error).toMatchObject({ status: 422, ...refusal });
  });

  it('refuses what it does not hold, and names the way to see it', async () => {
    answerFrom(sourceOf(fileOf({})));
    const error = api.get('traces/{trace}/overview', { trace: 't' }, signal);
    await expect(error).rejects.toMatchObject({
      code: 'not-in-file',
      message: 'This shared file does not hold this selection.',
      hint: expect.stringContaining('stepscope serve'),
    });
  });

  it('unpacks tiles, whatever tracks are requested', async () => {
    const slices = Array.from({ length: 40 }, (_, at) => ({
      track: at % 2,
      row: 0,
      startNs: at * 7000,
      endNs: at * 7000 + 5000 + at,
      name: at,
      event: 90_000 - 2000 * at,
      category: at % 3,
    }));
    const tile = encodeTile(slices, [0, 1], 9, 0);
    const key = 'traces/t/timeline/tiles?level=9&tile=0';
    const file = fileOf({});
    answerFrom(sourceOf({ ...file, responses: { [key]: packed(compressible(tile, 40)) } }));
    const parameters = { trace: 't', level: 9, tile: 0, tracks: '1' };
    const answer = await api.bytes('traces/{trace}/timeline/tiles', parameters, signal);
    expect(new Uint8Array(answer)).toEqual(new Uint8Array(tile));
  });
});
