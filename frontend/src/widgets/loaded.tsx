import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Failure } from './failure';
import './loaded.css';

const QUIET_MS = 150;

/** Grey shapes in the place of what is coming; nothing for the first moment, so that quick answers do not flicker. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }): ReactNode {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {shown &&
        // biome-ignore lint/suspicious/noArrayIndexKey: shapes without an identity
        Array.from({ length: rows }, (_, at) => <div key={at} className="skeleton-row" />)}
    </div>
  );
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
