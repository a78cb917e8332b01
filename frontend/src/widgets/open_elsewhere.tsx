import { type ReactNode, useState } from 'react';
import { addressOf, api, type QueryOf } from '../api/client';
import { type Narrowing, useNarrowing, useStaticQuery } from '../api/queries';
import type { Tools } from '../api/types.gen';
import { messageOf } from '../core/errors';
import { quantity } from '../core/format';
import { handToPerfetto, PUBLIC_PAGE } from '../host/perfetto';
import type { Selection } from '../state/selection';
import { Icon } from './icon';
import { Menu } from './menu';

/** The size limit of browsers, since Perfetto unpacks about ten times as much. */
const LARGE_BYTES = 400_000_000;

interface Props {
  readonly selection: Selection;
}

type FileRange = QueryOf<'traces/{trace}/file'>;

interface Elsewhere {
  readonly narrowing: Narrowing | null | undefined;
  readonly tools: Tools | undefined;
  /** The URL of the file, or of a part of it. */
  readonly addressOf: (part: FileRange) => string;
  readonly part: FileRange;
  /** Sends it to Perfetto; rejects with the reason. */
  readonly open: (page: string) => Promise<void>;
}

/** Ways to open the trace, or the filtered part of it, in other viewers. */
export function useElsewhere({ run, worker, span }: Selection): Elsewhere {
  const narrowing = useNarrowing(span.trace);
  const tools = useStaticQuery('tools', {});
  const part: FileRange = narrowing
    ? { start_ns: narrowing.start_ns, end_ns: narrowing.end_ns }
    : {};
  const open = (page: string): Promise<void> => {
    // Other readers reject damaged files: repair them.
    const repaired = span.damage === null ? part : { ...part, is_repaired: true };
    return handToPerfetto({
      page,
      title: `${run.name} – ${worker.name}${narrowing ? `, ${narrowing.label}` : ''}`,
      fileName: span.file,
      read: () =>
        api.bytes(
          'traces/{trace}/file',
          { trace: span.trace, ...repaired },
          new AbortController().signal,
        ),
    });
  };
  return {
    narrowing,
    tools: tools.data,
    addressOf: (range) => addressOf('traces/{trace}/file', { trace: span.trace, ...range }),
    part,
    open,
  };
}

/** Opens the trace, or the filtered part of it, in other viewers. */
export function OpenElsewhere({ selection }: Props): ReactNode {
  const { span } = selection;
  const elsewhere = useElsewhere(selection);
  const { narrowing, tools, part } = elsewhere;
  const [failure, setFailure] = useState<string | null>(null);
  const what = narrowing ? narrowing.label : span.file;
  const open = async (page: string): Promise<void> => {
    setFailure(null);
    try {
      await elsewhere.open(page);
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  const offline = tools?.perfetto ?? '';
  // A shared file does not hold the trace.
  if (import.meta.env.MODE === 'shared') return null;
  return (
    <Menu
      label={
        <>
          <Icon name="external" size={15} /> Open elsewhere
        </>
      }
      title="Download the trace, or open it in Perfetto"
    >
      <p className="menu-note note">For {what}:</p>
      <a className="option" href={elsewhere.addressOf(part)} download>
        Download as a trace
      </a>
      {narrowing && (
        <a className="option" href={elsewhere.addressOf({})} download>
          Download the whole file ({quantity(span.file_bytes, 'bytes')})
        </a>
      )}
      {offline === '' ? (
        <p className="menu-note note">
          Perfetto on this machine: <code>{tools?.perfetto_hint}</code>
        </p>
      ) : (
        <button type="button" className="option" onClick={() => void open(offline)}>
          Open in Perfetto, from this machine
        </button>
      )}
      <button type="button" className="option" onClick={() => void open(PUBLIC_PAGE)}>
        Open in ui.perfetto.dev
      </button>
      <p className="menu-note note">
        ui.perfetto.dev is loaded from the internet; the trace stays in this browser.
      </p>
      {!narrowing && span.file_bytes > LARGE_BYTES && (
        <p className="menu-note note">
          The file is large for a browser: select a step or a time range first.
        </p>
      )}
      {failure && (
        <p className="menu-note bad" role="alert">
          {failure}
        </p>
      )}
    </Menu>
  );
}
