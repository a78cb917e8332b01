/** Frames of Python stacks: `train.py(12): step`, in memory snapshots `train.py:12:step`. Pure. */

export interface StackFrame {
  readonly path: string;
  readonly line: number | null;
  readonly of: string;
}

const FRAME = /^(.*?)\((\d+)\): (.*)$/s;
const COLONS = /^(.+?):(\d+):(.+)$/s;

/** The parts of a frame; null for frames without a source location, such as built-in functions. */
export function stackFrame(text: string): StackFrame | null {
  const [, path, line, of] = FRAME.exec(text) ?? COLONS.exec(text) ?? [];
  if (path === undefined || line === undefined) return null;
  const number = Number(line);
  return { path, line: number > 0 ? number : null, of: of ?? '' };
}

/** The frames of a stack, outermost first. */
export const framesOf = (stack: string): readonly string[] =>
  stack.split(';').filter((frame) => frame !== '');
