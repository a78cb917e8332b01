import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { match, pieces, wordsOf } from './fuzzy';

/** Texts that answer to what was typed, the best first. */
const found = (typed: string, ...texts: string[]): string[] =>
  texts
    .flatMap((text) => {
      const result = match(text, wordsOf(typed));
      return result ? [{ text, score: result.score }] : [];
    })
    .sort((a, b) => b.score - a.score)
    .map(({ text }) => text);

const marked = (typed: string, text: string): string =>
  pieces(text, match(text, wordsOf(typed))?.positions ?? [])
    .map((piece) => (piece.isMatched ? `[${piece.text}]` : piece.text))
    .join('');

describe('a match', () => {
  it('is better at the start of the text, then of a word, then within one', () => {
    expect(found('add', 'foobaddo', 'aten::add', 'addmm', 'add')).toEqual([
      'add',
      'addmm',
      'aten::add',
      'foobaddo',
    ]);
  });

  it('needs every word that was typed, in any order', () => {
    expect(found('gemm sm90', 'cutlass_sm90_gemm', 'cutlass_sm80_gemm', 'sm90')).toEqual([
      'cutlass_sm90_gemm',
    ]);
  });

  it('finds letters that begin words, and none that are strewn anywhere', () => {
    expect(marked('lmf', 'LanguageModel.forward')).toBe('[L]anguage[M]odel.[f]orward');
    expect(found('cdk', 'cudaDeviceKernel', 'abcdefk', 'cxxxxxxdxxxxxxk')).toEqual([
      'cudaDeviceKernel',
    ]);
  });

  it('of the shorter one comes first where they match alike', () => {
    const [short, long] = ['aten::mul', `aten::mul${'_x'.repeat(60)}`];
    expect(found('mul', long, short)).toEqual([short, long]);
  });

  it('may be with what the text is, which is not marked', () => {
    expect(match('gemm', ['kernel', 'gemm'], 'kernel')?.positions).toEqual([0, 1, 2, 3]);
    expect(match('gemm', ['step', 'gemm'], 'kernel')).toBeNull();
  });
});

it('never marks other letters than were typed, and puts the pieces together to the whole', () => {
  const text = fc.stringMatching(/^[a-zA-Z0-9_:.<> ]{0,40}$/);
  const typed = fc.stringMatching(/^[a-z ]{0,6}$/);
  fc.assert(
    fc.property(text, typed, (whole, letters) => {
      const result = match(whole, wordsOf(letters));
      const parts = pieces(whole, result?.positions ?? []);
      expect(parts.map((part) => part.text).join('')).toBe(whole);
      for (const part of parts.filter((each) => each.isMatched))
        for (const letter of part.text.toLowerCase()) expect(letters).toContain(letter);
    }),
  );
});

it('finds every text by any part of it', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z_:]{1,40}$/), fc.nat(), fc.nat(), (text, a, b) => {
      const start = a % text.length;
      const part = text.slice(start, start + 1 + (b % 8));
      expect(match(text, wordsOf(part))).not.toBeNull();
    }),
  );
});
