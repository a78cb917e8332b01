import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { copyText } from '../host/clipboard';
import { Button } from './button';
import { Icon } from './icon';
import './toast.css';

interface Options {
  /** Reverts the action. */
  readonly undo?: (() => void) | undefined;
  readonly tone?: 'plain' | 'bad' | undefined;
}

interface Shown extends Options {
  readonly id: number;
  readonly words: string;
}

const SHOWN_MS = 7000;
const MOST_SHOWN = 3;

let shown: readonly Shown[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function put(next: readonly Shown[]): void {
  shown = next;
  for (const listener of listeners) listener();
}

const remove = (id: number): void => put(shown.filter((entry) => entry.id !== id));

/** Shows a message for a moment, optionally with an Undo button. */
/** Copies a text, and says whether the browser did. */
export async function copyWithToast(text: string, done: string): Promise<void> {
  const isCopied = await copyText(text);
  toast(isCopied ? done : 'The browser refused to copy', { tone: isCopied ? 'plain' : 'bad' });
}

export function toast(words: string, options: Options = {}): void {
  lastId += 1;
  put([...shown, { ...options, words, id: lastId }].slice(-MOST_SHOWN));
}

export const clearToasts = (): void => put([]);

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

function Toast({ id, words, undo, tone }: Shown): ReactNode {
  const [isPaused, setPaused] = useState(false);
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setTimeout(() => remove(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, isPaused]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only stays for as long as it is being read
    <div
      className={tone === 'bad' ? 'toast flex popup toast-bad' : 'toast flex popup'}
      onPointerEnter={() => setPaused(true)}
      onPointerLeave={() => setPaused(false)}
      onFocus={() => setPaused(true)}
      onBlur={() => setPaused(false)}
    >
      <span>{words}</span>
      {undo && (
        <Button
          quiet
          small
          className="toast-undo"
          onClick={() => {
            remove(id);
            undo();
          }}
        >
          <Icon name="undo" size={14} /> Undo
        </Button>
      )}
      <Button quiet small square aria-label={`Dismiss: ${words}`} onClick={() => remove(id)}>
        <Icon name="close" size={14} />
      </Button>
    </div>
  );
}

/** The visible messages. */
export function Toasts(): ReactNode {
  const present = useSyncExternalStore(subscribe, () => shown);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {present.map((entry) => (
        <Toast key={entry.id} {...entry} />
      ))}
    </div>
  );
}
