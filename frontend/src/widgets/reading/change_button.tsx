import type { ReactNode } from 'react';
import { type Change, RequestError } from '../../api/client';
import { useChange } from '../../api/queries';
import { Button } from '../button';

interface Props {
  readonly change: Change;
  readonly children: ReactNode;
  /** The subject, for screen readers. */
  readonly about: string;
}

const WORDS = { cancel: 'could not be cancelled', read: 'could not be requested' } as const;

/** A button that cancels or requests reading, and reports a failure. */
export function ChangeButton({ change, children, about }: Props): ReactNode {
  const { mutate, isPending, error, variables } = useChange();
  const hint = error instanceof RequestError ? error.hint : '';
  return (
    <span className="change">
      <Button aria-disabled={isPending} onClick={() => !isPending && mutate(change)}>
        {children}
        <span className="visually-hidden"> {about}</span>
      </Button>
      {error && variables?.what === change.what && (
        <span className="change-failed" role="alert">
          {change.of === 'listing' ? 'The scan' : 'Reading'} {WORDS[change.what]}: {error.message}{' '}
          {hint}
        </span>
      )}
    </span>
  );
}
