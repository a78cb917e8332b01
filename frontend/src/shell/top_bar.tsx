import { lazy, type ReactNode, Suspense, useCallback, useState } from 'react';
import type { RunState, Runs } from '../api/types.gen';
import { announcement } from '../core/progress';
import { themeStore, useTheme } from '../host/theme';
import { type Patch, useNavigation } from '../state/navigation';
import type { Selection } from '../state/selection';
import { views } from '../views';
import { Button } from '../widgets/button';
import { useCommands } from '../widgets/commands';
import { Copy } from '../widgets/copy';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';
import { copyWithToast } from '../widgets/toast';
import { ChordHint } from './chord_hint';
import { EventChip } from './event_chip';
import { ShellHelp } from './help';
import { paletteKey, useKeys } from './keys';
import { LookingNote } from './looking_note';
import { NarrowChip } from './narrowing';
import { useStepping } from './narrowing/use_steps';
import { Pickers } from './pickers';
import { ReadingNote } from './reading_note';
import './top_bar.css';

const Palette = lazy(() => import('./palette'));
const SharedNote = import.meta.env.MODE === 'shared' ? lazy(() => import('./shared_note')) : null;

function ThemeToggle(): ReactNode {
  const theme = useTheme();
  if (!themeStore.canToggle) return null;
  const other = theme === 'dark' ? 'light' : 'dark';
  return (
    <Button
      quiet
      square
      aria-label={`Use the ${other} theme`}
      title={`Use the ${other} theme`}
      onClick={themeStore.toggle}
    >
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </Button>
  );
}

const canCompare = views.some(({ id }) => id === 'compare');

/** A link to the comparison view. */
function CompareLink({ run }: { readonly run: RunState }): ReactNode {
  const { location, backTo } = useNavigation();
  if (!canCompare || location.view === 'compare') return null;
  return (
    <Goto
      to={backTo('compare')}
      className="button quiet square"
      title={`Compare ${run.name} with another trace`}
    >
      <Icon name="compare" />
      <span className="visually-hidden">Compare</span>
    </Goto>
  );
}

const namesOf = ({ run, worker, span }: Selection): Patch => ({
  run: run.id,
  worker: worker.name,
  span: span.label,
});

/** Saves a run as a file that anyone can open. */
function ShareButton({ run }: { readonly run: RunState }): ReactNode {
  const save = (): void => void import('./share').then(({ share }) => share(run));
  useCommands([{ id: 'share', label: 'Share as a file', run: save }]);
  return (
    <Button quiet square aria-label="Share" title="Share this run as one HTML file" onClick={save}>
      <Icon name="share" />
    </Button>
  );
}

function useShellCommands(link: (() => string) | null, showHelp: () => void): void {
  useCommands([
    ...(link
      ? [
          {
            id: 'copy-link',
            label: 'Copy link',
            run: () => void copyWithToast(link(), 'Link copied'),
          },
        ]
      : []),
    ...(themeStore.canToggle
      ? [{ id: 'theme', label: 'Switch between light and dark', run: themeStore.toggle }]
      : []),
    { id: 'help', label: 'Help and keyboard', run: showHelp },
    { id: 'print', label: 'Print this view', run: () => window.print() },
  ]);
}

interface Props {
  readonly runs: Runs;
  readonly selection: Selection | null;
}

export function TopBar({ runs, selection }: Props): ReactNode {
  const { addressOf, location, go } = useNavigation();
  const [open, setOpen] = useState<'help' | 'palette' | null>(null);
  const showHelp = useCallback(() => setOpen('help'), []);
  const showPalette = useCallback(() => setOpen('palette'), []);
  const close = useCallback(() => setOpen(null), []);
  const step = useStepping(selection?.span.state === 'ready' ? selection.span.trace : null);
  const letGo = (): boolean => {
    if (location.event === null) return false;
    go({ event: null }, 'replace');
    return true;
  };
  const isChord = useKeys({ showHelp, showPalette, step, letGo });
  const link = selection && (() => addressOf(namesOf(selection)));
  useShellCommands(link, showHelp);
  return (
    <header className="top-bar flex">
      <button
        type="button"
        className="skip"
        onClick={() => document.getElementById('main')?.focus()}
      >
        Skip to the content
      </button>
      <span className="brand flex">
        <svg width="22" height="22" viewBox="0 0 24 24" aria-hidden="true">
          <rect width="24" height="24" rx="6" />
          <path d="M5 17.5h4.2v-4.6h4.4V8.3H19" />
        </svg>
        <span>stepscope</span>
      </span>
      {selection && <Pickers runs={runs} selection={selection} />}
      {selection && <NarrowChip span={selection.span} step={step} />}
      {selection && <EventChip span={selection.span} />}
      <span className="space" />
      <span className="visually-hidden" role="status">
        {announcement(runs)}
      </span>
      <LookingNote runs={runs} />
      <ReadingNote runs={runs} />
      <Button
        className="find"
        aria-keyshortcuts="Control+K Meta+K"
        title={`Find anything: views, runs, ranks, steps, findings, names (${paletteKey()})`}
        onClick={showPalette}
      >
        <Icon name="search" size={15} />
        <span className="find-words">
          Find<span className="visually-hidden"> anything</span>
        </span>
        <kbd>{paletteKey()}</kbd>
      </Button>
      {selection && <CompareLink run={selection.run} />}
      {SharedNote ? (
        <Suspense fallback={null}>
          <SharedNote />
        </Suspense>
      ) : (
        selection?.run.state === 'ready' && <ShareButton run={selection.run} />
      )}
      {link && <Copy text={link} label="Copy link" icon="link" quiet />}
      <ThemeToggle />
      <Button
        quiet
        square
        aria-label="Help and keyboard"
        title="Help and keyboard (?)"
        onClick={showHelp}
      >
        <Icon name="help" />
      </Button>
      {isChord && <ChordHint />}
      {open === 'help' && <ShellHelp close={close} />}
      {open === 'palette' && (
        <Suspense fallback={null}>
          <Palette runs={runs} selection={selection} close={close} />
        </Suspense>
      )}
    </header>
  );
}
