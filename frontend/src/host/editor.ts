/** A line of the user's program, opened where the user edits it. The page itself reads no source file. */

export interface EditorSettings {
  /** An address with `{file}` and `{line}` in it, or empty: none. */
  readonly template: string;
  /** How paths begin in the trace; empty: those that begin nowhere, as profilers shorten them. */
  readonly from: string;
  /** How the same files' paths begin on this machine. */
  readonly to: string;
}

export interface Place {
  readonly path: string;
  /** From 1; null: not known. */
  readonly line: number | null;
}

export const NO_EDITOR: EditorSettings = { template: '', from: '', to: '' };

export const EDITORS: readonly { readonly name: string; readonly template: string }[] = [
  { name: 'VS Code', template: 'vscode://file/{file}:{line}' },
  { name: 'Cursor', template: 'cursor://file/{file}:{line}' },
  { name: 'PyCharm', template: 'pycharm://open?file={file}&line={line}' },
  { name: 'Zed', template: 'zed://file/{file}:{line}' },
];

const KEY = 'stepscope.editor';

/** Addresses that would run in the page, or show a file in it, are no editor's. */
const UNSAFE = /^(?:javascript|data|vbscript|blob|file|about|https?):/i;
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;

/** Why a template cannot be used; null: it can. An empty one says that there is none. */
export function faultOf(template: string): string | null {
  const wanted = template.trim();
  if (wanted === '') return null;
  if (!ADDRESS.test(wanted))
    return 'It has to begin with the editor’s own scheme, as vscode: does.';
  if (UNSAFE.test(wanted)) return 'Its scheme is a web page’s, not an editor’s.';
  return wanted.includes('{file}') ? null : 'It has to hold {file} where the path belongs.';
}

const encodePath = (path: string): string =>
  path.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':');

const ABSOLUTE = /^(?:[/\\]|[a-z]:)/i;

/** The path as this machine has it. */
export function localPath(path: string, { from, to }: EditorSettings): string {
  if (to === '') return path;
  if (from !== '') return path.startsWith(from) ? to + path.slice(from.length) : path;
  return ABSOLUTE.test(path) ? path : `${to.replace(/\/$/, '')}/${path}`;
}

/** The address that opens a line in the user's editor; null where none was chosen. */
export function editorAddress(place: Place, settings: EditorSettings): string | null {
  const { template } = settings;
  if (template.trim() === '' || faultOf(template) !== null) return null;
  const path = localPath(place.path, settings).replaceAll('\\', '/');
  // `vscode://file/{file}` with `/home/…` would have two slashes, and with `C:/…` needs the one.
  const file = encodePath(template.includes('/{file}') ? path.replace(/^\//, '') : path);
  return template
    .trim()
    .replaceAll('{file}', () => file)
    .replaceAll('{line}', String(place.line ?? 1));
}

function parse(text: string | null): EditorSettings {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    if (typeof value !== 'object' || value === null) return NO_EDITOR;
    const of = (name: string): string => {
      const found: unknown = Reflect.get(value, name);
      return typeof found === 'string' ? found : '';
    };
    return { template: of('template'), from: of('from'), to: of('to') };
  } catch {
    return NO_EDITOR;
  }
}

function read(): EditorSettings {
  try {
    return parse(window.localStorage.getItem(KEY));
  } catch {
    return NO_EDITOR; // storage may be forbidden
  }
}

let settings = read();
const listeners = new Set<() => void>();

export const editorStore = {
  current: (): EditorSettings => settings,
  subscribe: (changed: () => void): (() => void) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  },
  choose: (next: EditorSettings): void => {
    settings = next;
    try {
      window.localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // It then holds for as long as the page is open.
    }
    for (const listener of listeners) listener();
  },
};

/** Two frames deep, something around TensorBoard's page may be listening: VS Code's extension is. */
const embedder = (): Window | null => {
  const around = window.parent.parent;
  return window.parent !== window && around !== window.parent ? around : null;
};

/** Tells VS Code's TensorBoard extension, as torch-tb-profiler did; false where nobody is around to hear it. */
export function tellEmbedder({ path, line }: Place): boolean {
  const around = embedder();
  if (!around) return false;
  // Its origin is made anew for each webview, so it cannot be named; only the line that was pressed is told.
  around.postMessage({ filename: localPath(path, settings), line: line ?? 1 }, '*');
  return true;
}
