import { type ReactNode, useEffect, useState } from 'react';
import { copyText } from '../host/clipboard';
import { Icon, type IconName } from './icon';

type State = 'idle' | 'copied' | 'failed';
const WORDS_MS = 1800;

interface Props {
  /** The text, or a function that creates it on demand. */
  readonly text: string | (() => string);
  readonly label?: string;
  readonly icon?: IconName;
  readonly quiet?: boolean;
}

/** A button that copies a text and reports the result. */
export function Copy({ text, label = 'Copy', icon = 'copy', quiet = false }: Props): ReactNode {
  const [state, setState] = useState<State>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), WORDS_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    const done = await copyText(typeof text === 'function' ? text() : text);
    setState(done ? 'copied' : 'failed');
  };
  const words = { idle: label, copied: 'Copied', failed: 'The browser refused to copy' }[state];
  return (
    <button type="button" className={quiet ? 'button quiet' : 'button'} onClick={() => void copy()}>
      <Icon name={state === 'copied' ? 'passed' : icon} size={14} />
      <span aria-live="polite">{words}</span>
    </button>
  );
}
