import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { matcherOf } from './search';

const found = (query: string, text: string): boolean => {
  const matcher = matcherOf(query);
  return matcher.kind === 'test' && matcher.test(text);
};

describe('plain text', () => {
  it('is found anywhere, in any case', () => {
    expect(found('CONV2D', 'aten::conv2d')).toBe(true);
    expect(found('conv3d', 'aten::conv2d')).toBe(false);
  });

  it('has no special characters', () => {
    expect(found('a.c', 'abc')).toBe(false);
    expect(found('enumerate(', 'enumerate(DataLoader)#x')).toBe(true);
  });

  it('finds every part of a text in it', () => {
    fc.assert(
      fc.property(fc.string(), fc.stringMatching(/^[a-z(:]+$/), fc.string(), (a, b, c) => {
        expect(found(b, a + b + c)).toBe(true);
      }),
    );
  });

  it('is everything where it is empty', () => {
    expect(matcherOf('  ').kind).toBe('all');
  });
});

describe('expressions', () => {
  it('stand between slashes, and mind no case unless told', () => {
    expect(found('/^aten::(add|mul)_?$/', 'aten::ADD_')).toBe(true);
    expect(found('/^aten::(add|mul)_?$/', 'aten::addmm')).toBe(false);
    expect(found('/ADD/u', 'add')).toBe(false);
  });

  it('give the same answer every time, also with g', () => {
    const matcher = matcherOf('/a/gi');
    if (matcher.kind !== 'test') throw new Error('expected an expression');
    expect([matcher.test('a'), matcher.test('a'), matcher.test('a')]).toEqual([true, true, true]);
  });

  it('say so where they are none', () => {
    const matcher = matcherOf('/(/');
    expect(matcher.kind).toBe('invalid');
    expect(matcher.kind === 'invalid' && matcher.message).toBe('Unterminated group');
  });
});
