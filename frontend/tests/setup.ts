/** Before every test file that runs in a document; the build's own test runs in plain Node. */
import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';
import { clearToasts } from '../src/widgets/toast';

if (typeof document !== 'undefined') {
  // What is waited for comes late on a busy machine; what never comes is told all the same.
  configure({ asyncUtilTimeout: 30_000 });
  afterEach(() => {
    cleanup();
    clearToasts();
    localStorage.clear();
  });
  // There is no layout here: say that every element has room, so that virtual tables draw their rows.
  Object.defineProperties(HTMLElement.prototype, {
    clientHeight: { configurable: true, get: () => 600 },
    clientWidth: { configurable: true, get: () => 1200 },
  });
}
