/** TensorBoard's window, if the page runs inside TensorBoard; otherwise null. */

export interface Host {
  readonly window: Window;
  /** The name of the plugin in TensorBoard's URL. */
  readonly plugin: string;
}

function findHost(): Host | null {
  try {
    const frame = window.frameElement;
    if (!frame || window.parent === window) return null;
    // TensorBoard's frame loads plugin_entry.html?name=PLUGIN, which opens this page.
    const source = new URL(frame.getAttribute('src') ?? '', window.parent.location.href);
    if (!source.pathname.endsWith('plugin_entry.html')) return null;
    return { window: window.parent, plugin: source.searchParams.get('name') ?? 'stepscope' };
  } catch {
    return null; // a frame of another origin: its window is not accessible
  }
}

export const host: Host | null = findHost();
