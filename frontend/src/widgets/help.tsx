import { type ReactNode, useEffect, useRef } from 'react';
import { Icon } from './icon';
import './help.css';

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'This help'],
  ['g then a / o / p / k / h', 'Advice, Overview, Operators, Kernels, Health'],
  ['/', 'Search in the table'],
  ['↑ ↓ Page Home End', 'Move between the rows of a table'],
  ['Enter', 'Open the details of a row'],
  ['Esc', 'Close what is open, clear the search'],
];

interface Props {
  readonly close: () => void;
}

/** How to read and drive the page. */
export function Help({ close }: Props): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog closes on Escape by itself
    <dialog
      ref={dialog}
      className="help"
      aria-labelledby="help-title"
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2 id="help-title">Reading this page</h2>
        <button
          type="button"
          className="button quiet square"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          <Icon name="close" />
        </button>
      </header>
      <p>
        <strong>Savings</strong> are reckoned from time in which nothing useful ran, and each
        nanosecond is given to one finding only: the low end is what such fixes have been measured
        to bring, the high end is all of that time.
      </p>
      <p>
        <strong>Every link is the whole state.</strong> Copy the address, or use Copy link, and
        whoever opens it on the same log directory sees the same thing.
      </p>
      <p>
        <strong>A dash is not a zero.</strong> It stands for a figure that the trace does not hold.
        Numbers are rounded to three digits; rest the pointer on one for all of them.
      </p>
      <h3>Keyboard</h3>
      <dl>
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
