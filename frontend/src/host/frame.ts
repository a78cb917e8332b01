/** TensorBoard's window, where the page runs inside of it; null stand-alone and in a foreign frame. */

export interface Host {
  readonly window: Window;
  /** Our name in TensorBoard's URL. */
  readonly plugin: string;
}

function findHost(): Host | null {
  try {
    const frame = window.frameElement;
    if (!frame || window.parent === window) return null;
    // TensorBoard's frame loads plugin_entry.html?name=PLUGIN, which then leads to us.
    const source = new URL(frame.getAttribute('src') ?? '', window.parent.location.href);
    if (!source.pathname.endsWith('plugin_entry.html')) return null;
    return { window: window.parent, plugin: source.searchParams.get('name') ?? 'stepscope' };
  } catch {
    return null; // another origin's frame: its window must not be touched
  }
}

export const host: Host | null = findHost();
