import type { ReactNode } from 'react';
import type { Problem } from '../api/types.gen';
import { count, plural } from '../core/format';
import { sentence } from '../core/sentence';
import { Icon } from './icon';
import './problems.css';

/** Hosts that cannot reach a folder report one problem, not a thousand. */
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

/** Problems with the same message and remedy, the most frequent first. */
export function alikeOf(problems: readonly Problem[]): Alike[] {
  const groups = new Map<string, Alike & { paths: string[] }>();
  for (const { path, message, remedy } of problems) {
    const key = `${message}\n${remedy}`;
    const alike = groups.get(key);
    if (alike) alike.paths.push(path);
    else groups.set(key, { message, remedy, paths: [path] });
  }
  return [...groups.values()].sort((a, b) => b.paths.length - a.paths.length);
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

/** Files that could not be read, with reasons and remedies. */
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
