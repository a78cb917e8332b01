/** Excerpts of damaged files, made visible. Pure. */

const code = (character: string): string =>
  `\\u{${character.codePointAt(0)?.toString(16).padStart(2, '0')}}`;

/** The text in one line, with control and direction characters escaped. */
export function visible(text: string): string {
  return text.replaceAll(/\s*[\r\n]\s*/g, ' ').replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, code);
}
