/** True for a line of code, as against a sentence. */
export const isCode = (text: string): boolean =>
  /[()=]/.test(text) && !/[.!?]$/.test(text.trim()) && !/^[A-Z][a-z]+ /.test(text);

/** A fragment as a sentence: a capital to begin with, a stop at the end. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  // A name such as `aten::add` or a path keeps its own spelling.
  const first = /^[a-z]+[\s,]/.test(trimmed)
    ? trimmed.charAt(0).toUpperCase() + trimmed.slice(1)
    : trimmed;
  return /[.!?:]$/.test(first) ? first : `${first}.`;
}
