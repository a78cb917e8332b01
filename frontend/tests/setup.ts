/** Runs before each test file that has a document; the test of the build runs in plain Node. */
import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';
import { clearDismissed } from '../src/host/dismissed';
import { clearToasts } from '../src/widgets/toast';

if (typeof document !== 'undefined') {
  // Generous for a busy machine.
  configure({ asyncUtilTimeout: 30_000 });
  afterEach(() => {
    cleanup();
    clearToasts();
    clearDismissed();
    localStorage.clear();
  });
  // Without layout every element gets a size, so that virtual tables draw their rows.
  Object.defineProperties(HTMLElement.prototype, {
    clientHeight: { configurable: true, get: () => 600 },
    clientWidth: { configurable: true, get: () => 1200 },
  });
}
