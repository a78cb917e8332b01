import { type MouseEvent, type ReactNode, useSyncExternalStore } from 'react';
import {
  editorAddress,
  editorStore,
  localPath,
  type SourceLocation,
  tellEmbedder,
} from '../host/editor';
import { Icon } from './icon';
import './source_line.css';
import { copyWithToast } from './toast';

interface Props {
  readonly path: string;
  /** From 1; null: not recorded. */
  readonly line: number | null;
  /** The function. */
  readonly of?: string | undefined;
  /** Number of path parts to show; the tooltip has the whole path. */
  readonly parts?: number;
}

/** The end of a path: `torch/nn/modules/linear.py` → `…/modules/linear.py`. */
export function pathEnd(path: string, parts: number): string {
  const words = path.split(/[/\\]/);
  return words.length <= parts + 1 ? path : `…/${words.slice(-parts).join('/')}`;
}

async function copyLocation(location: SourceLocation): Promise<void> {
  const path = localPath(location.path, editorStore.current());
  const text = location.line === null ? path : `${path}:${location.line}`;
  await copyWithToast(text, `Copied ${text}`);
}

/** Without an editor: notifies VS Code around the page, and copies the location. */
function open(location: SourceLocation): void {
  tellEmbedder(location);
  void copyLocation(location);
}

/** `file:line` of the user's program: opens in the selected editor, or is copied. */
export function SourceLine({ path, line, of, parts = 2 }: Props): ReactNode {
  const settings = useSyncExternalStore(editorStore.subscribe, editorStore.current);
  const location: SourceLocation = { path, line };
  const address = editorAddress(location, settings);
  const whole = line === null ? path : `${path}:${line}`;
  const words = (
    <>
      <Icon name="file" size={13} />
      <span className="ellipsis">
        {pathEnd(path, parts)}
        {line !== null && <b>:{line}</b>}
      </span>
      {of !== undefined && of !== '' && <span className="ellipsis muted">{of}</span>}
    </>
  );
  const stop = (event: MouseEvent): void => event.stopPropagation();
  if (address !== null) {
    return (
      <a
        className="source-line inline"
        href={address}
        title={`Open ${whole} in your editor`}
        onClick={(event) => {
          stop(event);
          tellEmbedder(location);
        }}
      >
        {words}
      </a>
    );
  }
  return (
    <button
      type="button"
      className="source-line inline"
      title={`${whole}\nClick to copy; select an editor under Help`}
      onClick={(event) => {
        stop(event);
        open(location);
      }}
    >
      {words}
    </button>
  );
}
