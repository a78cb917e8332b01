import { type MouseEvent, type ReactNode, useSyncExternalStore } from 'react';
import { copyText } from '../host/clipboard';
import { editorAddress, editorStore, localPath, type Place, tellEmbedder } from '../host/editor';
import { Icon } from './icon';
import './source_line.css';
import { toast } from './toast';

interface Props {
  readonly path: string;
  /** From 1; null where it was not recorded. */
  readonly line: number | null;
  /** The function that it is in. */
  readonly of?: string | undefined;
  /** How many of the path's last parts are read at once; the whole path is in the tooltip. */
  readonly parts?: number;
}

/** The end of a path: `torch/nn/modules/linear.py` → `…/modules/linear.py`. */
export function pathEnd(path: string, parts: number): string {
  const words = path.split(/[/\\]/);
  return words.length <= parts + 1 ? path : `…/${words.slice(-parts).join('/')}`;
}

async function copyPlace(place: Place): Promise<void> {
  const path = localPath(place.path, editorStore.current());
  const text = place.line === null ? path : `${path}:${place.line}`;
  const isCopied = await copyText(text);
  toast(isCopied ? `Copied ${text}` : 'Copying was refused', { tone: isCopied ? 'plain' : 'bad' });
}

/** Without an editor of its own: VS Code around the page is told, and the place is copied in any case. */
function open(place: Place): void {
  tellEmbedder(place);
  void copyPlace(place);
}

/** `file:line` of the user's program: opens in the editor that was chosen, else is copied. */
export function SourceLine({ path, line, of, parts = 2 }: Props): ReactNode {
  const settings = useSyncExternalStore(editorStore.subscribe, editorStore.current);
  const place: Place = { path, line };
  const address = editorAddress(place, settings);
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
          tellEmbedder(place);
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
      title={`${whole}\nPress to copy; an editor is chosen under Help`}
      onClick={(event) => {
        stop(event);
        open(place);
      }}
    >
      {words}
    </button>
  );
}
