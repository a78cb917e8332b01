import type { ReactNode } from 'react';

interface Props {
  readonly text: string;
}

/** Plain text in which `backticks` mark code. */
export function Prose({ text }: Props): ReactNode {
  return text.split(/`([^`\n]+)`/).map((part, at) =>
    at % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a fixed text never move
      <code key={at} className="inline-code">
        {part}
      </code>
    ) : (
      part
    ),
  );
}
