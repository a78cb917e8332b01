/** Opens source lines in the user's editor. The page reads no source files. */

export interface EditorSettings {
  /** A URL with `{file}` and `{line}`; empty: none. */
  readonly template: string;
  /** Prefix of paths in the trace; empty: relative paths, as profilers shorten them. */
  readonly from: string;
  /** Prefix of the same paths on this machine. */
  readonly to: string;
}

export interface SourceLocation {
  readonly path: string;
  /** From 1; null: unknown. */
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

/** Schemes that would run in the page or show a file in it. */
const UNSAFE = /^(?:javascript|data|vbscript|blob|file|about|https?):/i;
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;

/** The error of a template; null if it is valid or empty. */
export function faultOf(template: string): string | null {
  const text = template.trim();
  if (text === '') return null;
  if (!ADDRESS.test(text)) return 'It must start with the scheme of an editor, such as vscode:.';
  if (UNSAFE.test(text)) return 'This is the scheme of a web page.';
  return text.includes('{file}') ? null : 'It must contain {file}.';
}

const encodePath = (path: string): string =>
  path.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':');

const ABSOLUTE = /^(?:[/\\]|[a-z]:)/i;

/** The path on this machine. */
export function localPath(path: string, { from, to }: EditorSettings): string {
  if (to === '') return path;
  if (from !== '') return path.startsWith(from) ? to + path.slice(from.length) : path;
  return ABSOLUTE.test(path) ? path : `${to.replace(/\/$/, '')}/${path}`;
}

/**
 * Whether a path from a trace is one of a source file on this machine: a path with two slashes at
 * its start would make Windows log in at another machine, and `..` leads out of the folder that the
 * user named.
 */
function isSafe(path: string): boolean {
  return !/^\/\/|(?:^|\/)\.\.(?:\/|$)|\p{Cc}/u.test(path);
}

/** The URL that opens a line in the user's editor; null without an editor or a safe path. */
export function editorAddress(location: SourceLocation, settings: EditorSettings): string | null {
  const { template } = settings;
  if (template.trim() === '' || faultOf(template) !== null) return null;
  const path = localPath(location.path, settings).replaceAll('\\', '/');
  if (!isSafe(path)) return null;
  // `vscode://file/{file}` with `/home/…` would have two slashes; with `C:/…` it needs one.
  const file = encodePath(template.includes('/{file}') ? path.replace(/^\//, '') : path);
  return template
    .trim()
    .replaceAll('{file}', () => file)
    .replaceAll('{line}', String(location.line ?? 1));
}

function parse(text: string | null): EditorSettings {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    if (typeof value !== 'object' || value === null) return NO_EDITOR;
    const of = (name: string): string => {
      const field: unknown = Reflect.get(value, name);
      return typeof field === 'string' ? field : '';
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
    return NO_EDITOR;
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
      // The setting then lasts until the page is closed.
    }
    for (const listener of listeners) listener();
  },
};

/** The window around TensorBoard's page, such as VS Code's extension. */
const embedder = (): Window | null => {
  const around = window.parent.parent;
  return window.parent !== window && around !== window.parent ? around : null;
};

/**
 * Sends a line to VS Code's TensorBoard extension, as torch-tb-profiler did; false without such a
 * window.
 */
export function tellEmbedder({ path, line }: SourceLocation): boolean {
  const around = embedder();
  if (!around) return false;
  // The origin of a webview is random; the message holds only the clicked line.
  around.postMessage({ filename: localPath(path, settings), line: line ?? 1 }, '*');
  return true;
}
