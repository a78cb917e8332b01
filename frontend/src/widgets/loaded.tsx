import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Failure } from './failure';
import './loaded.css';

const QUIET_MS = 150;
const LONG_MS = 2500;

/** A placeholder while data is loading; it appears after a moment, and explains long waits. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }): ReactNode {
  const shown = useWaited(QUIET_MS);
  const isLong = useWaited(LONG_MS);
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {isLong && (
        <p className="muted">
          Still computing. The first request for a large trace takes some seconds, later ones are
          fast.
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

/** A query: its data, its error, or a placeholder. */
export function Loaded<T>({ query, what, children }: Props<T>): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.error) {
    return <Failure error={query.error} what={what} retry={() => void query.refetch()} />;
  }
  return <Skeleton />;
}
