/** Whether a text is code, not a sentence. */
export const isCode = (text: string): boolean =>
  /[()=]/.test(text) && !/[.!?]$/.test(text.trim()) && !/^[A-Z][a-z]+ /.test(text);

/** A fragment with a capital and a full stop. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  // Names such as `aten::add` and paths keep their spelling.
  const first = /^[a-z]+[\s,]/.test(trimmed)
    ? trimmed.charAt(0).toUpperCase() + trimmed.slice(1)
    : trimmed;
  return /[.!?:]$/.test(first) ? first : `${first}.`;
}
