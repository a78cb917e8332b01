import { Component, type ErrorInfo, type ReactNode } from 'react';
import { RequestError } from '../api/client';
import { Copy } from './copy';
import { Empty } from './empty';

interface FailureProps {
  readonly error: Error;
  readonly what: string;
  readonly retry?: () => void;
}

/** A request that has no answer: what, why, what to do. */
export function Failure({ error, what, retry }: FailureProps): ReactNode {
  const hint = error instanceof RequestError ? error.hint : '';
  return (
    <Empty icon="critical" title={`${what} could not be shown`} tone="bad">
      <p>{error.message}</p>
      {hint !== '' && <p>{hint}</p>}
      {retry && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </Empty>
  );
}

interface BoundaryProps {
  readonly what: string;
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: Error | null;
}

/** Keeps a fault in one view away from the rest of the page. */
export class ErrorBoundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null };
  private stack = '';

  static getDerivedStateFromError(error: Error): BoundaryState {
    return { error };
  }

  override componentDidCatch(_error: Error, info: ErrorInfo): void {
    this.stack = info.componentStack ?? '';
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    const details = (): string =>
      `${error.name}: ${error.message}\n${error.stack ?? ''}\n${this.stack}`;
    return (
      <Empty icon="critical" title={`${this.props.what}: this view failed`} tone="bad">
        <p>
          {error.message} The other views still work. This is a fault of stepscope: please report it
          with the details.
        </p>
        <div className="row">
          <button type="button" className="button" onClick={() => this.setState({ error: null })}>
            Try again
          </button>
          <Copy text={details} label="Copy details" />
        </div>
      </Empty>
    );
  }
}
