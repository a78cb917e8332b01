import { type ReactNode, useCallback, useState, useSyncExternalStore } from 'react';
import type { Runs, Span, Worker } from '../api/types.gen';
import { announcement, spansOf } from '../core/progress';
import { themeStore } from '../host/theme';
import { useNavigation } from '../state/navigation';
import type { Selection } from '../state/selection';
import { SyntheticBadge } from '../widgets/badge';
import { Copy } from '../widgets/copy';
import { Help } from '../widgets/help';
import { Icon } from '../widgets/icon';
import { type Choice, Picker } from '../widgets/picker';
import { useKeys } from './keys';
import { ReadingNote } from './reading_note';

interface Props {
  readonly runs: Runs;
  readonly selection: Selection | null;
}

const SEVERITIES = ['critical', 'warning', 'info'] as const;

/** The worst damage that was found in any of some files. */
const worstDamage = (spans: readonly Span[]): Span['damage'] =>
  SEVERITIES.find((severity) => spans.some((span) => span.damage === severity)) ?? null;

function runChoices(runs: Runs): Choice[] {
  return runs.runs.map((run) => ({
    key: run.id,
    label: run.name,
    state: run.state,
    damage: worstDamage(spansOf(run)),
    note: run.synthetic ? 'synthetic' : undefined,
  }));
}

function workerChoice(worker: Worker): Choice {
  const isAlone = worker.spans.length === 1;
  return {
    key: worker.name,
    label: worker.name,
    note: worker.rank === null ? undefined : `rank ${worker.rank}`,
    state: isAlone ? worker.spans[0]?.state : undefined,
    damage: worstDamage(worker.spans),
  };
}

function Pickers({
  runs,
  selection,
}: {
  readonly runs: Runs;
  readonly selection: Selection;
}): ReactNode {
  const { go } = useNavigation();
  const { run, worker, span } = selection;
  const spans = worker.spans.map(({ label, state, file, damage }) => ({
    key: label,
    label,
    state,
    damage,
    note: file,
  }));
  return (
    <div className="pickers">
      <Picker
        label="Run"
        choices={runChoices(runs)}
        value={run.id}
        onChoose={(key) => go({ run: key })}
      />
      {run.synthetic && <SyntheticBadge />}
      <Picker
        label="Worker"
        choices={run.workers.map(workerChoice)}
        value={worker.name}
        onChoose={(key) => go({ run: run.id, worker: key, span: null })}
      />
      <Picker
        label="Span"
        choices={spans}
        value={span.label}
        onChoose={(key) => go({ run: run.id, worker: worker.name, span: key })}
      />
    </div>
  );
}

function ThemeToggle(): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  if (!themeStore.canToggle) return null;
  const other = theme === 'dark' ? 'light' : 'dark';
  return (
    <button
      type="button"
      className="button quiet square"
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={themeStore.toggle}
    >
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </button>
  );
}

/** What is shown, and what can be done with all of it. */
export function TopBar({ runs, selection }: Props): ReactNode {
  const { href } = useNavigation();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const showHelp = useCallback(() => setHelpOpen(true), []);
  useKeys(showHelp);
  const named = selection && {
    run: selection.run.id,
    worker: selection.worker.name,
    span: selection.span.label,
  };
  return (
    <header className="top-bar">
      <button
        type="button"
        className="skip"
        onClick={() => document.getElementById('main')?.focus()}
      >
        Skip to the content
      </button>
      <span className="brand">
        <svg width="22" height="22" viewBox="0 0 24 24" aria-hidden="true">
          <rect width="24" height="24" rx="6" />
          <path d="M5 17.5h4.2v-4.6h4.4V8.3H19" />
        </svg>
        <span>stepscope</span>
      </span>
      {selection && <Pickers runs={runs} selection={selection} />}
      <span className="space" />
      <span className="visually-hidden" role="status">
        {announcement(runs)}
      </span>
      <ReadingNote runs={runs} />
      {named && <Copy text={() => href(named)} label="Copy link" icon="link" quiet />}
      <ThemeToggle />
      <button
        type="button"
        className="button quiet square"
        aria-label="Help and keyboard"
        title="Help and keyboard (?)"
        onClick={showHelp}
      >
        <Icon name="help" />
      </button>
      {isHelpOpen && <Help close={() => setHelpOpen(false)} />}
    </header>
  );
}
