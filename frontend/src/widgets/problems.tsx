import type { ReactNode } from 'react';
import type { Problem } from '../api/types.gen';
import { plural } from '../core/format';
import { sentence } from '../core/sentence';
import { Icon } from './icon';
import './problems.css';

function headline(problems: readonly Problem[]): string {
  const [first] = problems;
  if (problems.length === 1 && first) return `${first.path}: ${first.message}`;
  return `${plural(problems.length, 'file or folder', 'files or folders')} could not be read; the others are not affected`;
}

/** Files that could not be read: each with why and what to do. The others are not affected. */
export function Problems({ problems }: { readonly problems: readonly Problem[] }): ReactNode {
  if (problems.length === 0) return null;
  return (
    <details className="problems">
      <summary>
        <Icon name="warning" />
        <span className="problems-words">{headline(problems)}</span>
        <Icon name="down" size={14} />
      </summary>
      <ul>
        {problems.map((problem) => (
          <li key={problem.path + problem.message}>
            <code>{problem.path}</code>
            <span>{sentence(problem.message)}</span>
            {problem.remedy !== '' && <span className="muted">{sentence(problem.remedy)}</span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
