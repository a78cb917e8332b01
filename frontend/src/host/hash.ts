/** The page's location in the URL that the user sees: TensorBoard's own when we run inside it. */
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
  /** The address of a location, for links and for Copy. */
  readonly href: (location: PageLocation) => string;
}

interface Target {
  readonly window: Window;
  readonly read: () => PageLocation | null;
  readonly format: (location: PageLocation) => string;
  readonly isShown: () => boolean;
}

const own: Target = {
  window,
  read: () => parseHash(window.location.hash),
  format: formatHash,
  isShown: () => true,
};

function within(tensorboard: Host): Target {
  const { plugin } = tensorboard;
  const hash = (): string => tensorboard.window.location.hash;
  return {
    window: tensorboard.window,
    read: () => parseHostHash(plugin, hash()),
    format: (location) => formatHostHash(plugin, location, hash()),
    isShown: () => isHostHashOf(plugin, hash()),
  };
}

/** Keeps the location, writes it into the URL, and hears when Back or the user changes it. */
export function createHashStore(target: Target): HashStore {
  const found = target.read();
  let location = found ?? parseHash('');
  const listeners = new Set<() => void>();

  const put = (mode: 'push' | 'replace'): void => {
    if (!target.isShown()) return; // another tab of TensorBoard is shown: its URL is not ours
    const { history } = target.window;
    if (mode === 'push') history.pushState(history.state, '', target.format(location));
    else history.replaceState(history.state, '', target.format(location));
  };

  // A bare `#stepscope` says what is shown from the start, so that Back can lead here again.
  if (found === null) put('replace');

  const changedOutside = (): void => {
    if (!target.isShown()) return;
    const next = target.read();
    if (next === null) {
      put('replace'); // back on our tab with a bare `#stepscope`: say again what is shown
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
      return createHashStore(within(host));
    } catch {
      // A browser may refuse the parent's history: our own URL then carries the state.
    }
  }
  return createHashStore(own);
}

export const hashStore: HashStore = openStore();
