import { Fragment, type ReactNode } from 'react';

/** A label and its value; false where there is nothing to show. */
export type Fact = readonly [label: string, value: ReactNode] | false | null;

interface Props {
  readonly facts: readonly Fact[];
  readonly className?: string;
  /** Whether labels and values are cells of one grid; else each pair is a block. */
  readonly isGrid?: boolean;
}

/** Labels with their values. */
export function Facts({ facts, className, isGrid = false }: Props): ReactNode {
  const Pair = isGrid ? Fragment : 'div';
  return (
    <dl className={className}>
      {facts.map(
        (fact) =>
          fact && (
            <Pair key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </Pair>
          ),
      )}
    </dl>
  );
}
