/** The traces of a run with their names. Pure. */
import type { RunState } from '../api/types.gen';

export interface Recording {
  readonly trace: string;
  readonly rank: number | null;
  /** The name of the worker. */
  readonly name: string;
  readonly span: string;
}

export const recordingsOf = (run: RunState): Recording[] =>
  run.workers.flatMap(({ name, rank, spans }) =>
    spans.map(({ trace, label }) => ({ trace, rank, name, span: label })),
  );

/** `rank 3`, or the worker's name. */
export const recordingName = ({ rank, name }: Recording): string =>
  rank === null ? name : `rank ${rank}`;
