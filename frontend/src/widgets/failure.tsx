import { Component, type ErrorInfo, type ReactNode } from 'react';
import { RequestError } from '../api/client';
import { sentence } from '../core/sentence';
import { Button } from './button';
import { Code } from './code';
import { Copy } from './copy';
import { Empty } from './empty';

interface FailureProps {
  readonly error: Error;
  readonly what: string;
  readonly retry?: () => void;
}

const NOT_RECORDED = 'not-recorded';

/** A remedy is code or a sentence. */
const looksLikeCode = (text: string): boolean => /\w\(|=/.test(text);

/** Data that was not recorded, with the code that records it. */
function NotRecorded({ error, what }: FailureProps & { readonly error: RequestError }): ReactNode {
  const { hint } = error;
  return (
    <Empty icon="info" title={`${what}: no data`}>
      <p>{sentence(error.message)}</p>
      {looksLikeCode(hint) && <p>To record it:</p>}
      {looksLikeCode(hint) ? <Code code={hint} /> : hint !== '' && <p>{sentence(hint)}</p>}
    </Empty>
  );
}

/** A failed request: message, hint, retry. */
export function Failure({ error, what, retry }: FailureProps): ReactNode {
  if (error instanceof RequestError && error.code === NOT_RECORDED) {
    return <NotRecorded error={error} what={what} />;
  }
  const hint = error instanceof RequestError ? error.hint : '';
  if (import.meta.env.MODE === 'shared') {
    return (
      <Empty icon="info" title={`${what}: not in this file`}>
        <p>{error.message}</p>
        <p>{hint}</p>
      </Empty>
    );
  }
  return (
    <Empty icon="critical" title={`${what} could not be shown`} tone="bad">
      <p>{error.message}</p>
      {hint !== '' && <p>{hint}</p>}
      {retry && <Button onClick={retry}>Try again</Button>}
    </Empty>
  );
}

/** Messages of Chromium, Firefox and Safari for a script that cannot be loaded. */
const MISSING_PART =
  /dynamically imported module|Importing a module script failed|Unable to preload CSS/i;

const isMissingPart = ({ message }: Error): boolean => MISSING_PART.test(message);

/** A part of the page could not be loaded: the server is gone, or has another version. */
function MissingPart({ what }: { readonly what: string }): ReactNode {
  return (
    <Empty icon="warning" title={`${what} could not be loaded`} tone="bad">
      <p>
        The server was stopped, or runs another version of stepscope. Reload the page when it is
        available; the URL keeps the state.
      </p>
      <Button onClick={() => window.location.reload()}>Reload the page</Button>
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

/** Limits an error to one view. */
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
    if (isMissingPart(error)) return <MissingPart what={this.props.what} />;
    const details = (): string =>
      `${error.name}: ${error.message}\n${error.stack ?? ''}\n${this.stack}`;
    return (
      <Empty icon="critical" title={`${this.props.what}: this view failed`} tone="bad">
        <p>{sentence(error.message)}</p>
        <p>
          The other views still work. This is a bug in stepscope: please report it with the details.
        </p>
        <div className="row">
          <Button onClick={() => this.setState({ error: null })}>Try again</Button>
          <Copy text={details} label="Copy details" />
        </div>
      </Empty>
    );
  }
}
