import type { ReactNode } from 'react';
import { framesOf, stackFrame } from '../core/frames';
import { SourceLine } from './source_line';

/** The functions of a stack, innermost first, with source locations. */
export function StackList({ stack }: { readonly stack: string }): ReactNode {
  const frames = framesOf(stack).toReversed();
  return (
    <ol className="stack-list" aria-label="Functions, innermost first">
      {frames.map((text, at) => {
        const frame = stackFrame(text);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a function that calls itself is there twice
          <li key={`${at} ${text}`}>
            {frame ? (
              <SourceLine path={frame.path} line={frame.line} of={frame.of} />
            ) : (
              <span className="mono">{text}</span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
