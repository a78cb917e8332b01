/** TensorBoard's reload button: plugins that register receive its messages. */
import { host } from './frame';

interface Message {
  readonly type: string;
  readonly id: number;
  readonly isReply: boolean;
}

function parse(data: unknown): Message | null {
  try {
    return typeof data === 'string' ? (JSON.parse(data) as Message) : null;
  } catch {
    return null;
  }
}

/** Calls `reloaded` whenever TensorBoard has reloaded its data. */
export function onReload(reloaded: () => void): () => void {
  if (!host) return () => undefined;
  const channel = new MessageChannel();
  channel.port1.onmessage = (event: MessageEvent<unknown>) => {
    const message = parse(event.data);
    if (!message || message.isReply) return;
    if (message.type === 'experimental.DataReloaded') reloaded();
    const reply = { type: message.type, id: message.id, payload: null, error: null, isReply: true };
    channel.port1.postMessage(JSON.stringify(reply));
  };
  host.window.postMessage('experimental.bootstrap', host.window.location.origin, [channel.port2]);
  return () => channel.port1.close();
}
