/** What stands in a damaged file, so that it can be looked at. Pure. */

const code = (character: string): string =>
  `\\u{${character.codePointAt(0)?.toString(16).padStart(2, '0')}}`;

/** In one line; characters that nobody sees, or that turn the text around, are written out. */
export function visible(text: string): string {
  return text.replaceAll(/\s*[\r\n]\s*/g, ' ').replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, code);
}
