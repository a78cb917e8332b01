import type { ReactNode } from 'react';
import type { PageProps } from '../view';
import { ModulesView } from './modules';

/** The modules of the recording, and what each costs. */
export default function Page({ selection }: PageProps): ReactNode {
  return <ModulesView selection={selection} key={selection.span.trace} />;
}
