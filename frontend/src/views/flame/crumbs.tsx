/** The path to the zoomed frame, and the only function shown. */
import type { ReactNode } from 'react';
import { IconButton } from '../../widgets/button';
import { frameName } from './labels';
import { type Layout, NONE, type Node, nameOf, pathTo } from './layout';

const LAST = 3;

interface Props {
  readonly layout: Layout;
  readonly root: Node;
  readonly name: string | null;
  readonly onRoot: (node: Node) => void;
  readonly onName: (name: string | null) => void;
}

export function Crumbs({ layout, root, name, onRoot, onName }: Props): ReactNode {
  const path = pathTo(layout, root);
  const shown = path.length > LAST + 1 ? path.slice(-LAST) : path;
  const hidden = path.slice(0, path.length - shown.length);
  if (root === NONE && name === null) return null;
  return (
    <nav className="flame-crumbs wrap" aria-label="Frames">
      {name !== null && (
        <span className="flame-only inline">
          Only <b title={name}>{frameName(name)}</b>
          <IconButton
            icon="close"
            size={13}
            label="Show all functions"
            title="Show all functions"
            onClick={() => onName(null)}
          />
        </span>
      )}
      {root !== NONE && (
        <ol>
          <li>
            <button type="button" onClick={() => onRoot(NONE)}>
              All
            </button>
          </li>
          {hidden.length > 0 && (
            <li>
              <button
                type="button"
                title={hidden.map((node) => nameOf(layout, node)).join('\n')}
                onClick={() => onRoot(hidden.at(-1) ?? NONE)}
              >
                … {hidden.length} more
              </button>
            </li>
          )}
          {shown.map((node) => (
            <li key={node}>
              <button
                type="button"
                title={nameOf(layout, node)}
                aria-current={node === root ? 'location' : undefined}
                onClick={() => onRoot(node)}
              >
                {frameName(nameOf(layout, node))}
              </button>
            </li>
          ))}
        </ol>
      )}
    </nav>
  );
}
