import type { ReactNode } from 'react';

/** A label, its value, and a text to show on hover; anything falsy is left out. */
export type Fact =
  | readonly [label: string, value: ReactNode, title?: string | undefined]
  | false
  | null
  | undefined;

interface Props {
  readonly facts: readonly Fact[];
  readonly className?: string;
  /** Whether labels and values are cells of one grid; else each pair is a block. */
  readonly isGrid?: boolean;
}

/** Labels with their values. */
export function Facts({ facts, className = 'facts', isGrid = false }: Props): ReactNode {
  return (
    <dl className={className}>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]} title={fact[2]} style={isGrid ? { display: 'contents' } : undefined}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
