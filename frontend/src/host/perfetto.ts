/** Hands a recording to Perfetto's page in a window of its own, by the messages that Perfetto documents ("Deep linking"). */

export const PUBLIC_PAGE = 'https://ui.perfetto.dev';
const ASK_EVERY_MS = 100;
const MOST_PATIENCE_MS = 60_000;

export interface Handed {
  /** The address of Perfetto's page. */
  readonly page: string;
  readonly title: string;
  readonly fileName: string;
  readonly read: () => Promise<ArrayBuffer>;
}

/** Resolves when the window says that it listens. */
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
      failed(new Error('Perfetto’s page did not answer within a minute.'));
    }, MOST_PATIENCE_MS);
    window.addEventListener('message', heard);
  });
}

/** Opens the window at once, since browsers allow that only while a press is handled, and sends the recording when both are ready. */
export async function handToPerfetto({ page, title, fileName, read }: Handed): Promise<void> {
  const address = new URL(page, document.baseURI);
  const opened = window.open(`${address.href}#!/viewer`, '_blank');
  if (!opened) throw new Error('The browser kept the window from opening. Allow pop-ups here.');
  const { origin } = address;
  const [buffer] = await Promise.all([read(), listening(opened, origin)]);
  const perfetto = { buffer, title, fileName };
  opened.postMessage({ perfetto }, origin, [buffer]);
}
