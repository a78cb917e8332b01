/** Downloads recorded and simulated events as one trace, or opens it in Perfetto. */
import { type ReactNode, useState } from 'react';
import { addressOf, api } from '../../api/client';
import { useStaticQuery } from '../../api/queries';
import { messageOf } from '../../core/errors';
import { handToPerfetto, PUBLIC_PAGE } from '../../host/perfetto';
import type { Selection } from '../../state/selection';
import { Icon } from '../../widgets/icon';
import { Menu } from '../../widgets/menu';
import type { Parameters } from './changes';

interface Props {
  readonly selection: Selection;
  readonly parameters: Parameters;
}

export function OpenSimulated({ selection, parameters }: Props): ReactNode {
  const { run, worker, span } = selection;
  const [failure, setFailure] = useState<string | null>(null);
  const offline = useStaticQuery('tools', {}).data?.perfetto ?? '';
  const all = { trace: span.trace, ...parameters };
  const open = async (page: string): Promise<void> => {
    setFailure(null);
    try {
      await handToPerfetto({
        page,
        title: `${run.name} – ${worker.name}, recorded and simulated`,
        fileName: span.file,
        read: () => api.bytes('traces/{trace}/what-if/file', all, new AbortController().signal),
      });
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <Menu
      label={
        <>
          <Icon name="external" size={15} /> Open as a trace
        </>
      }
      title="Recorded and simulated events as one trace"
    >
      <a className="option" href={addressOf('traces/{trace}/what-if/file', all)} download>
        Download as a trace
      </a>
      {offline !== '' && (
        <button type="button" className="option" onClick={() => void open(offline)}>
          Open in Perfetto, from this machine
        </button>
      )}
      <button type="button" className="option" onClick={() => void open(PUBLIC_PAGE)}>
        Open in ui.perfetto.dev
      </button>
      <p className="menu-note note">
        Recorded and simulated events, one below the other. ui.perfetto.dev is loaded from the
        internet; the trace stays in this browser.
      </p>
      {failure && (
        <p className="menu-note bad" role="alert">
          {failure}
        </p>
      )}
    </Menu>
  );
}
