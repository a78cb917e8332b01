/** What the files of a side or of all runs are, as part of a question's key. Pure. */
import type { Span } from './types.gen';

/**
 * Changes when a file comes, goes, is written anew, or is given up; not with each file that is read, for then a
 * question on thousands would be asked anew before it was answered. Those are asked for until none is waited for.
 */
export function fileSet(spans: readonly Span[]): string {
  const ended = spans.filter(({ state }) => state === 'unreadable' || state === 'cancelled').length;
  const bytes = spans.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
  return `${spans.length} files, ${bytes} bytes, ${ended} given up`;
}
