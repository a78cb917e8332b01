/**
 * Sends a trace to Perfetto in another window, by Perfetto's documented messages ("Deep linking").
 */

export const PUBLIC_PAGE = 'https://ui.perfetto.dev';
const ASK_EVERY_MS = 100;
const MOST_PATIENCE_MS = 60_000;

export interface Handed {
  /** The URL of Perfetto. */
  readonly page: string;
  readonly title: string;
  readonly fileName: string;
  readonly read: () => Promise<ArrayBuffer>;
}

/** Resolves when the window is ready to receive. */
function listening(target: Window, origin: string): Promise<void> {
  return new Promise((done, failed) => {
    const end = (): void => {
      clearInterval(asking);
      clearTimeout(waiting);
      window.removeEventListener('message', heard);
    };
    const heard = (event: MessageEvent): void => {
      if (event.source !== target || event.origin !== origin || event.data !== 'PONG') return;
      end();
      done();
    };
    const asking = setInterval(() => target.postMessage('PING', origin), ASK_EVERY_MS);
    const waiting = setTimeout(() => {
      end();
      failed(new Error('Perfetto did not respond within a minute.'));
    }, MOST_PATIENCE_MS);
    window.addEventListener('message', heard);
  });
}

/**
 * Opens the window at once, because browsers allow that only during a click, and sends the trace
 * when both are ready.
 */
export async function handToPerfetto({ page, title, fileName, read }: Handed): Promise<void> {
  const address = new URL(page, document.baseURI);
  const opened = window.open(`${address.href}#!/viewer`, '_blank');
  if (!opened) throw new Error('The browser blocked the window. Allow pop-ups for this page.');
  const { origin } = address;
  const [buffer] = await Promise.all([read(), listening(opened, origin)]);
  const perfetto = { buffer, title, fileName };
  opened.postMessage({ perfetto }, origin, [buffer]);
}
