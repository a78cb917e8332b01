import { type ReactNode, useId, useRef, useState, useSyncExternalStore } from 'react';
import { EDITORS, type EditorSettings, editorStore, faultOf } from '../host/editor';
import { IconButton } from './button';
import { Dialog } from './dialog';
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
  /** Shortcuts of the page, then of each view. */
  readonly sections: readonly HelpSection[];
  /** Letters after `g`, with their views. */
  readonly chords: Keys;
}

/** Keys start with a capital or are one character; other words are actions: `drag`. */
const isKey = (word: string): boolean => word.length === 1 || /^[A-Z]/.test(word);

/** Alternatives, such as `Ctrl + wheel, pinch`. */
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

/** The editor that opens source lines. */
function Editor(): ReactNode {
  const settings = useSyncExternalStore(editorStore.subscribe, editorStore.current);
  const id = useId();
  const isListed =
    settings.template === '' || EDITORS.some((e) => e.template === settings.template);
  const [isCustom, setCustom] = useState(!isListed);
  const fault = faultOf(settings.template);
  return (
    <section className="help-editor">
      <h3>Source lines</h3>
      <label className="help-field" htmlFor={id}>
        <span>open in</span>
        <select
          id={id}
          value={isCustom ? 'own' : settings.template}
          onChange={({ target }) => {
            setCustom(target.value === 'own');
            if (target.value !== 'own') editorStore.choose({ ...settings, template: target.value });
          }}
        >
          <option value="">no editor: a click copies file and line</option>
          {EDITORS.map(({ name, template }) => (
            <option key={name} value={template}>
              {name}
            </option>
          ))}
          <option value="own">another editor, by its URL</option>
        </select>
      </label>
      {isCustom && <Field label="URL" name="template" placeholder="editor://open?{file}:{line}" />}
      {isCustom && fault !== null && (
        <p className="bad" role="alert">
          {fault}
        </p>
      )}
      {(isCustom || settings.template !== '') && (
        <>
          <Field label="path prefix in the trace" name="from" placeholder="/workspace/train" />
          <Field label="prefix on this machine" name="to" placeholder="/home/me/src/train" />
        </>
      )}
      <p className="muted">
        In VS Code’s TensorBoard tab, lines open in VS Code itself. The setting is stored in this
        browser.
      </p>
    </section>
  );
}

export default function Help({ close, sections, chords }: Props): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <Dialog dialog={dialog} className="help" label="Reading this page" close={close}>
      <div className="help-head flex">
        <h2>Reading this page</h2>
        <IconButton icon="close" label="Close" size={18} onClick={() => dialog.current?.close()} />
      </div>
      <p>
        <strong>Savings</strong> are estimated from time without useful work; each nanosecond counts
        for one finding only. The low end is based on measured fixes, the high end is all of that
        time.
      </p>
      <p>
        <strong>The URL is the whole state.</strong> Copy it, or use Copy link: with the same log
        directory it shows the same.
      </p>
      <p>
        <strong>A dash is not a zero:</strong> the trace does not have the value. Numbers are
        rounded to three digits; hover over one for all digits.
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
    </Dialog>
  );
}
