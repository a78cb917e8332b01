/** Texts for the state and progress of files. Pure. */
import type { Progress as FileProgress, Span } from '../../api/types.gen';
import { bytes, count, plural, rate, roughly } from '../../core/format';
import type { Pace } from '../../core/pace';
import { isPending, type Progress } from '../../core/progress';

export const STATE_WORDS: Readonly<Record<Span['state'], string>> = {
  queued: 'waiting',
  reading: 'being read',
  ready: 'ready',
  cancelled: 'cancelled',
  unreadable: 'unreadable',
};

const PHASE_WORDS: Readonly<Record<FileProgress['phase'], string>> = {
  waiting: 'waiting for memory',
  reading: 'reading',
  analysing: 'analysing',
  advising: 'running checks',
};

const left = (ns: number | null): string => (ns === null ? '' : `about ${roughly(ns)} left`);

function amount({ phase, bytes_done, bytes_total, events }: FileProgress): readonly string[] {
  if (phase === 'waiting') return [];
  const size = phase === 'reading' ? `${bytes(bytes_done)} of ${bytes(bytes_total)}` : '';
  return [size, events > 0 ? plural(events, 'event') : ''];
}

export function fileWords(span: Span): readonly string[] {
  const { state, progress, place: position, file_bytes, is_growing } = span;
  if (state === 'reading' && progress) {
    const words = [PHASE_WORDS[progress.phase], ...amount(progress), left(progress.left_ns)];
    return words.filter((word) => word !== '');
  }
  const size = bytes(file_bytes);
  if (is_growing) return ['still being written: it is read when it stops growing', size];
  if (state === 'queued') {
    return [position === null || position === 1 ? 'next' : `number ${position} in the queue`, size];
  }
  return state === 'reading' ? ['starting', size] : [STATE_WORDS[state], size];
}

export function wholeWords(progress: Progress, pace?: Pace): readonly string[] {
  const { doneCount, totalCount, bytesDone, bytesTotal } = progress;
  const words = [
    totalCount > 1 ? `${count(doneCount)} of ${plural(totalCount, 'file')} done` : '',
    bytesTotal > 0 ? `${bytes(bytesDone)} of ${bytes(bytesTotal)}` : '',
    pace?.bytesPerSecond ? rate(pace.bytesPerSecond) : '',
    left(pace ? pace.leftNs : progress.leftNs),
  ];
  return words.filter((word) => word !== '');
}

/** Whether the bytes of a file are counted. */
export const isCounted = (span: Span): boolean =>
  isPending(span) && span.progress?.phase === 'reading' && span.progress.bytes_total > 0;
