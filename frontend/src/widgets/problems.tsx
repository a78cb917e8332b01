import type { ReactNode } from 'react';
import type { Problem } from '../api/types.gen';
import { count, plural } from '../core/format';
import { sentence } from '../core/sentence';
import { Icon } from './icon';
import './problems.css';

/** A folder that a thousand machines cannot reach is one problem, not a thousand. */
const MOST_NAMED = 8;

function headline(problems: readonly Problem[]): string {
  const [first] = problems;
  if (problems.length === 1 && first) return `${first.path}: ${first.message}`;
  return `${plural(problems.length, 'file or folder', 'files or folders')} could not be read; the others are not affected`;
}

interface Alike {
  readonly message: string;
  readonly remedy: string;
  readonly paths: readonly string[];
}

/** Problems of one message and remedy together, what most of them have first. */
export function alikeOf(problems: readonly Problem[]): Alike[] {
  const found = new Map<string, Alike & { paths: string[] }>();
  for (const { path, message, remedy } of problems) {
    const key = `${message}\n${remedy}`;
    const alike = found.get(key);
    if (alike) alike.paths.push(path);
    else found.set(key, { message, remedy, paths: [path] });
  }
  return [...found.values()].sort((a, b) => b.paths.length - a.paths.length);
}

function Paths({ paths }: Pick<Alike, 'paths'>): ReactNode {
  const rest = paths.length - MOST_NAMED;
  return (
    <>
      {paths.slice(0, MOST_NAMED).map((path) => (
        <code key={path} className="note">
          {path}
        </code>
      ))}
      {rest > 0 && <span className="muted">and {count(rest)} more</span>}
    </>
  );
}

/** Files that could not be read: each with why and what to do. The others are not affected. */
export function Problems({ problems }: { readonly problems: readonly Problem[] }): ReactNode {
  if (problems.length === 0) return null;
  return (
    <details className="problems framed notice-warn">
      <summary className="flex">
        <Icon name="warning" tone="warn" />
        <span className="ellipsis">{headline(problems)}</span>
        <Icon name="down" size={14} tone="muted" />
      </summary>
      <ul>
        {alikeOf(problems).map(({ message, remedy, paths }) => (
          <li key={`${message}\n${remedy}`}>
            <Paths paths={paths} />
            <span>{sentence(message)}</span>
            {remedy !== '' && <span className="muted">{sentence(remedy)}</span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
