/** The recordings of a run by what names them. Pure. */
import type { RunState } from '../api/types.gen';

export interface Recording {
  readonly trace: string;
  readonly rank: number | null;
  /** The worker's. */
  readonly name: string;
  readonly span: string;
}

export const recordingsOf = (run: RunState): Recording[] =>
  run.workers.flatMap(({ name, rank, spans }) =>
    spans.map(({ trace, label }) => ({ trace, rank, name, span: label })),
  );

/** `rank 3`, or where nothing tells it the worker's name. */
export const recordingName = ({ rank, name }: Recording): string =>
  rank === null ? name : `rank ${rank}`;
