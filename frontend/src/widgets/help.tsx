import { type ReactNode, useEffect, useId, useRef, useState, useSyncExternalStore } from 'react';
import { EDITORS, type EditorSettings, editorStore, faultOf } from '../host/editor';
import { Icon } from './icon';
import './help.css';

type Keys = readonly (readonly [string, string])[];

const TABLE_KEYS: Keys = [
  ['↑ ↓ Page Home End', 'Move between the rows'],
  ['Enter', 'Open the details of a row'],
];

export interface HelpSection {
  readonly title: string;
  readonly keys: Keys;
}

interface Props {
  readonly close: () => void;
  /** Keys of the shell, then those of each view, the one on show first. */
  readonly sections: readonly HelpSection[];
  /** Letters behind `g`, with where they lead. */
  readonly chords: Keys;
}

/** Keys have names that begin with a capital, or are one sign; other words are what the hand does: `drag`. */
const isKey = (word: string): boolean => word.length === 1 || /^[A-Z]/.test(word);

/** `Ctrl + wheel, pinch`: ways to do the same, each of keys and words. */
function Ways({ keys }: { readonly keys: string }): ReactNode {
  return keys.split(', ').map((way) => (
    <span key={way} className="help-way">
      {way.split(' ').map((word, at) =>
        word !== '+' && isKey(word) ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the keys of a fixed text never move
          <kbd key={at}>{word}</kbd>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above
          <span key={at}>{word}</span>
        ),
      )}
    </span>
  ));
}

function KeyList({ keys }: { readonly keys: Keys }): ReactNode {
  return (
    <dl>
      {keys.map(([key, meaning]) => (
        <div key={key}>
          <dt>
            <Ways keys={key} />
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: keyof EditorSettings;
  readonly placeholder: string;
}

function Field({ label, name, placeholder }: FieldProps): ReactNode {
  const settings = useSyncExternalStore(editorStore.subscribe, editorStore.current);
  return (
    <label className="help-field">
      <span>{label}</span>
      <input
        value={settings[name]}
        placeholder={placeholder}
        spellCheck={false}
        onChange={(event) => editorStore.choose({ ...settings, [name]: event.target.value })}
      />
    </label>
  );
}

/** Which editor opens the lines of code that the page names. */
function Editor(): ReactNode {
  const settings = useSyncExternalStore(editorStore.subscribe, editorStore.current);
  const id = useId();
  const isListed =
    settings.template === '' || EDITORS.some((e) => e.template === settings.template);
  const [isOwn, setOwn] = useState(!isListed);
  const fault = faultOf(settings.template);
  return (
    <section className="help-editor">
      <h3>Lines of code</h3>
      <label className="help-field" htmlFor={id}>
        <span>open in</span>
        <select
          id={id}
          value={isOwn ? 'own' : settings.template}
          onChange={({ target }) => {
            setOwn(target.value === 'own');
            if (target.value !== 'own') editorStore.choose({ ...settings, template: target.value });
          }}
        >
          <option value="">nothing: a press copies file and line</option>
          {EDITORS.map(({ name, template }) => (
            <option key={name} value={template}>
              {name}
            </option>
          ))}
          <option value="own">another editor, by its address</option>
        </select>
      </label>
      {isOwn && <Field label="address" name="template" placeholder="editor://open?{file}:{line}" />}
      {isOwn && fault !== null && (
        <p className="bad" role="alert">
          {fault}
        </p>
      )}
      {(isOwn || settings.template !== '') && (
        <>
          <Field label="paths that begin with" name="from" placeholder="/workspace/train" />
          <Field label="begin here with" name="to" placeholder="/home/me/src/train" />
        </>
      )}
      <p className="muted">
        In VS Code’s TensorBoard tab, lines open in VS Code itself. The choice stays in this
        browser.
      </p>
    </section>
  );
}

/** How to read and drive the page. */
export default function Help({ close, sections, chords }: Props): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog closes on Escape by itself
    <dialog
      ref={dialog}
      className="help popup"
      aria-labelledby="help-title"
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <div className="help-head flex">
        <h2 id="help-title">Reading this page</h2>
        <button
          type="button"
          className="button quiet square"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          <Icon name="close" />
        </button>
      </div>
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
      <div className="help-columns">
        <section>
          <h3>Go to a view</h3>
          <KeyList keys={chords} />
        </section>
        <div>
          {sections.map(({ title, keys }) => (
            <section key={title}>
              <h3>{title}</h3>
              <KeyList keys={keys} />
            </section>
          ))}
          <section>
            <h3>In tables</h3>
            <KeyList keys={TABLE_KEYS} />
          </section>
        </div>
      </div>
      <Editor />
    </dialog>
  );
}
