import type { ReactNode } from 'react';
import type { PageProps } from '../view';
import { Memory } from './memory';

/** The memory of the recording's devices. */
export default function Page({ selection }: PageProps): ReactNode {
  return <Memory selection={selection} key={selection.span.trace} />;
}
