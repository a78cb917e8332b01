/** The location of the page in the visible URL, which is TensorBoard's inside TensorBoard. */
import {
  formatHash,
  formatHostHash,
  isHostHashOf,
  type PageLocation,
  parseHash,
  parseHostHash,
} from '../state/location';
import { type Host, host } from './frame';

export interface HashStore {
  readonly current: () => PageLocation;
  readonly write: (location: PageLocation, mode: 'push' | 'replace') => void;
  readonly subscribe: (changed: () => void) => () => void;
  /** The URL of a location. */
  readonly href: (location: PageLocation) => string;
}

interface Target {
  readonly window: Window;
  readonly read: () => PageLocation | null;
  readonly format: (location: PageLocation) => string;
  readonly isShown: () => boolean;
}

const standalone: Target = {
  window,
  read: () => parseHash(window.location.hash),
  format: formatHash,
  isShown: () => true,
};

function inside(tensorboard: Host): Target {
  const { plugin } = tensorboard;
  const hash = (): string => tensorboard.window.location.hash;
  return {
    window: tensorboard.window,
    read: () => parseHostHash(plugin, hash()),
    format: (location) => formatHostHash(plugin, location, hash()),
    isShown: () => isHostHashOf(plugin, hash()),
  };
}

/** Stores the location in the URL, and follows Back and edits of the URL. */
export function createHashStore(target: Target): HashStore {
  const initial = target.read();
  let location = initial ?? parseHash('');
  const listeners = new Set<() => void>();

  const put = (mode: 'push' | 'replace'): void => {
    if (!target.isShown()) return; // another tab of TensorBoard is shown
    const { history } = target.window;
    try {
      if (mode === 'push') history.pushState(history.state, '', target.format(location));
      else history.replaceState(history.state, '', target.format(location));
    } catch {
      // A document in a notebook's frame has no URL of its own.
    }
  };

  // A bare `#stepscope` gets the location at once, so that Back can return to it.
  if (initial === null) put('replace');

  const changedOutside = (): void => {
    if (!target.isShown()) return;
    const next = target.read();
    if (next === null) {
      put('replace'); // back on this tab with a bare `#stepscope`
      return;
    }
    location = next;
    for (const listener of listeners) listener();
  };
  target.window.addEventListener('popstate', changedOutside);
  target.window.addEventListener('hashchange', changedOutside);
  window.addEventListener('pagehide', () => {
    target.window.removeEventListener('popstate', changedOutside);
    target.window.removeEventListener('hashchange', changedOutside);
  });

  return {
    current: () => location,
    write: (next, mode) => {
      if (target.format(next) === target.format(location)) return;
      location = next;
      put(mode);
      for (const listener of listeners) listener();
    },
    subscribe: (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    href: (next) => {
      const { origin, pathname, search } = target.window.location;
      return `${origin}${pathname}${search}${target.format(next)}`;
    },
  };
}

function openStore(): HashStore {
  if (host) {
    try {
      return createHashStore(inside(host));
    } catch {
      // Without access to the parent's history, the page's own URL holds the state.
    }
  }
  return createHashStore(standalone);
}

export const hashStore: HashStore = openStore();
