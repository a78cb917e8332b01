import { useEffect, useState } from 'react';

/** Requests of which only the last counts: a new one aborts the one before. */
export interface LatestRequest {
  readonly begin: () => AbortSignal;
  readonly cancel: () => void;
}

function latestRequest(): LatestRequest {
  let controller: AbortController | null = null;
  const cancel = (): void => {
    controller?.abort();
    controller = null;
  };
  const begin = (): AbortSignal => {
    cancel();
    controller = new AbortController();
    return controller.signal;
  };
  return { begin, cancel };
}

/** One per component; it is aborted when the component leaves the page. */
export function useLatestRequest(): LatestRequest {
  const [request] = useState(latestRequest);
  useEffect(() => request.cancel, [request]);
  return request;
}
