import { describe, expect, it, vi } from 'vitest';
import { formatHostHash, HOME, isHostHashOf, LANDING, parseHostHash } from '../state/location';
import { createHashStore } from './hash';

/** TensorBoard's window, as far as the store knows it. */
function hostWindow(start: string) {
  let at = 0;
  const entries = [start];
  const target = new EventTarget() as EventTarget & Record<string, unknown>;
  target.location = {
    origin: 'http://localhost:6006',
    pathname: '/prefix/',
    search: '',
    get hash() {
      return entries[at];
    },
  };
  target.history = {
    state: null,
    pushState: (_state: unknown, _title: string, hash: string) => {
      entries.splice(at + 1, entries.length, hash);
      at += 1;
    },
    replaceState: (_state: unknown, _title: string, hash: string) => {
      entries[at] = hash;
    },
  };
  return {
    window: target as unknown as Window,
    entries,
    back: () => {
      at -= 1;
      target.dispatchEvent(new Event('popstate'));
    },
    /** TensorBoard itself goes to one of its tabs. */
    leaveTo: (hash: string) => {
      entries.splice(at + 1, entries.length, hash);
      at += 1;
      target.dispatchEvent(new Event('hashchange'));
    },
  };
}

function storeIn(host: ReturnType<typeof hostWindow>) {
  const hash = () => host.window.location.hash;
  return createHashStore({
    window: host.window,
    read: () => parseHostHash('stepscope', hash()),
    format: (location) => formatHostHash('stepscope', location, hash()),
    isShown: () => isHostHashOf('stepscope', hash()),
  });
}

describe('inside TensorBoard', () => {
  it('opens where the link says', () => {
    const store = storeIn(hostWindow('#stepscope&p.stepscope.view=kernels'));
    expect(store.current().view).toBe('kernels');
  });

  it.each([
    ['#stepscope', LANDING],
    ['', LANDING],
    ['#stepscope&p.stepscope.view=advice', 'advice'],
  ])('goes back with Back to %s', (start, view) => {
    const host = hostWindow(start);
    const store = storeIn(host);
    const changed = vi.fn();
    store.subscribe(changed);
    store.write({ ...HOME, view: 'kernels' }, 'push');
    host.back();
    expect(store.current().view).toBe(view);
    expect(changed).toHaveBeenCalledTimes(2);
  });

  it('says again what it shows when the user comes back to the tab', () => {
    const host = hostWindow('#stepscope');
    const store = storeIn(host);
    store.write({ ...HOME, view: 'kernels', search: 'gemm' }, 'push');
    host.leaveTo('#scalars');
    host.leaveTo('#stepscope');
    expect(store.current().view).toBe('kernels');
    expect(host.window.location.hash).toContain('p.stepscope.search=gemm');
  });

  it('does not write into another tab’s URL', () => {
    const host = hostWindow('#stepscope');
    const store = storeIn(host);
    host.leaveTo('#scalars');
    store.write({ ...HOME, view: 'kernels' }, 'replace');
    expect(host.window.location.hash).toBe('#scalars');
  });

  it('links to TensorBoard’s own address', () => {
    const store = storeIn(hostWindow('#stepscope'));
    expect(store.href({ ...HOME, view: 'kernels' })).toBe(
      'http://localhost:6006/prefix/#stepscope&p.stepscope.view=kernels',
    );
  });
});

describe('in a document without a URL of its own, such as a frame of a notebook', () => {
  it('keeps the location, although the browser refuses to write it', () => {
    const host = hostWindow('#stepscope');
    host.window.history.pushState = host.window.history.replaceState = () => {
      throw new DOMException('about:srcdoc', 'SecurityError');
    };
    const store = storeIn(host);
    const changed = vi.fn();
    store.subscribe(changed);
    store.write({ ...HOME, view: 'kernels' }, 'push');
    expect(store.current().view).toBe('kernels');
    expect(changed).toHaveBeenCalledTimes(1);
  });
});
