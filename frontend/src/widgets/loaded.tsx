import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Failure } from './failure';
import './loaded.css';

const QUIET_MS = 150;
const LONG_MS = 2500;

/**
 * Grey shapes in the place of what is coming; nothing for the first moment, so that quick answers do
 * not flicker. Where it takes long, words say why.
 */
export function Skeleton({ rows = 5 }: { readonly rows?: number }): ReactNode {
  const shown = useWaited(QUIET_MS);
  const isLong = useWaited(LONG_MS);
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {isLong && (
        <p className="muted">
          Still working it out. The first look at a large recording takes some seconds, the next
          ones do not.
        </p>
      )}
      {shown &&
        // biome-ignore lint/suspicious/noArrayIndexKey: shapes without an identity
        Array.from({ length: rows }, (_, at) => <div key={at} className="skeleton-row" />)}
    </div>
  );
}

function useWaited(milliseconds: number): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setOver(true), milliseconds);
    return () => clearTimeout(timer);
  }, [milliseconds]);
  return isOver;
}

interface Props<T> {
  readonly query: UseQueryResult<T>;
  readonly what: string;
  readonly children: (value: T) => ReactNode;
}

/** One of three: waiting, failed, there. */
export function Loaded<T>({ query, what, children }: Props<T>): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.error) {
    return <Failure error={query.error} what={what} retry={() => void query.refetch()} />;
  }
  return <Skeleton />;
}
