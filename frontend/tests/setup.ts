/** Before every test file that runs in a document; the build's own test runs in plain Node. */
import { cleanup } from '@testing-library/react';
import { afterEach } from 'vitest';

if (typeof document !== 'undefined') {
  afterEach(() => {
    cleanup();
    localStorage.clear();
  });
  // There is no layout here: say that every element has room, so that virtual tables draw their rows.
  Object.defineProperties(HTMLElement.prototype, {
    clientHeight: { configurable: true, get: () => 600 },
    clientWidth: { configurable: true, get: () => 1200 },
  });
}
