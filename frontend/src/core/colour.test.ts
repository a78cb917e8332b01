import { describe, expect, it } from 'vitest';
import { colourOf, MEMORY_COLOURS } from './colour';

const KNOWN =
  'kernel communication memcpy memset runtime dataloader cpu python annotation device-annotation step synchronization overhead other alloc post-sync host-stall dispatch queued no-record tail'.split(
    ' ',
  );

function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

describe('category colours', () => {
  it('differ from one another', () => {
    expect(new Set(KNOWN.map(colourOf)).size).toBe(KNOWN.length);
  });

  it.each([...KNOWN, 'new-one', 'graph', 'x'])('%s stands out from both surfaces', (id) => {
    expect(contrast(colourOf(id), '#ffffff')).toBeGreaterThanOrEqual(3);
    expect(contrast(colourOf(id), '#161a21')).toBeGreaterThanOrEqual(3);
  });

  it.each(Object.entries(MEMORY_COLOURS))('%s, of memory, too', (_, colour) => {
    expect(contrast(colour, '#ffffff')).toBeGreaterThanOrEqual(3);
    expect(contrast(colour, '#161a21')).toBeGreaterThanOrEqual(3);
  });

  it('stay the same for an unknown category', () => {
    expect(colourOf('something-new')).toBe(colourOf('something-new'));
  });
});
