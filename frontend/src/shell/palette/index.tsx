import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useDeferredValue,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useAdvice, useOverview, useStaticQuery, useTraceQuery } from '../../api/queries';
import type { Runs } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { pieces } from '../../core/fuzzy';
import { movedIndex } from '../../core/list_keys';
import { downloadFrom } from '../../host/download';
import { PUBLIC_PAGE } from '../../host/perfetto';
import { addRecent, readRecent } from '../../host/recent';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { views } from '../../views';
import { type Command, offeredCommands } from '../../widgets/commands';
import { Dialog } from '../../widgets/dialog';
import { Icon } from '../../widgets/icon';
import { useElsewhere } from '../../widgets/open_elsewhere';
import { toast } from '../../widgets/toast';
import {
  commandEntries,
  type Entry,
  findingEntries,
  nameEntries,
  passedEntries,
  runEntries,
  stepEntries,
  tableEntries,
  viewEntries,
  workerEntries,
} from './entries';
import { firstGroups, type Hit, type HitGroup, hitsFor } from './search';
import './palette.css';

const RECENT = 'palette';
const NOTHING: readonly Entry[] = [];

function useRecordingEntries(selection: Selection): readonly Entry[] {
  const { run, span } = selection;
  const isReady = span.state === 'ready';
  const advice = useAdvice(run, span.trace).data;
  const overview = useOverview(span.trace, { enabled: isReady }).data;
  const tables = useStaticQuery('tables', {}).data;
  const names = useTraceQuery(span.trace, 'names', {}, { enabled: isReady }).data;
  return useMemo(
    () => [
      ...(advice
        ? [...findingEntries(advice, selection), ...passedEntries(advice, selection)]
        : []),
      ...workerEntries(run),
      ...(overview ? stepEntries(overview) : []),
      ...(tables ? tableEntries(tables, views) : []),
      ...(names ? nameEntries(names, views) : []),
    ],
    [advice, run, overview, tables, names, selection],
  );
}

/** Actions that open the trace, or the filtered part of it, in other viewers. */
function useElsewhereEntries(selection: Selection): readonly Entry[] {
  const elsewhere = useElsewhere(selection);
  if (selection.span.state !== 'ready') return NOTHING;
  const { narrowing, tools, part } = elsewhere;
  const note = narrowing?.label ?? 'the whole trace';
  const open = (page: string) => (): void => {
    elsewhere.open(page).catch((error: Error) => toast(error.message, { tone: 'bad' }));
  };
  const offline = tools?.perfetto ?? '';
  if (import.meta.env.MODE === 'shared') return [];
  return commandEntries([
    ...(offline === ''
      ? []
      : [
          {
            id: 'perfetto',
            label: 'Open in Perfetto, from this machine',
            note,
            run: open(offline),
          },
        ]),
    { id: 'perfetto-web', label: 'Open in ui.perfetto.dev', note, run: open(PUBLIC_PAGE) },
    {
      id: 'download',
      label: 'Download as a trace',
      note,
      run: () => downloadFrom(elsewhere.addressOf(part)),
    },
  ]);
}

interface Props {
  readonly runs: Runs;
  readonly selection: Selection | null;
  readonly close: () => void;
}

function Label({ hit }: { readonly hit: Hit }): ReactNode {
  return pieces(hit.entry.label, hit.positions).map((piece, at) =>
    piece.isMatched ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a fixed text never move
      <mark key={at}>{piece.text}</mark>
    ) : (
      piece.text
    ),
  );
}

interface GroupProps {
  readonly group: HitGroup;
  readonly id: string;
  /** Index of its first result. */
  readonly from: number;
  readonly active: number;
  readonly choose: (entry: Entry, isElsewhere: boolean) => void;
}

function Group({ group, id, from, active, choose }: GroupProps): ReactNode {
  const { kind, hits, moreCount } = group;
  const heading = `${id}-${kind.replaceAll(' ', '-')}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: options of a listbox are grouped so
    <div role="group" aria-labelledby={heading}>
      <div className="palette-kind note" id={heading} role="presentation">
        {kind}
        {moreCount > 0 && <span> and {count(moreCount)} more: refine the search</span>}
      </div>
      {hits.map((hit, offset) => {
        const at = from + offset;
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the combobox
          <div
            key={hit.entry.key}
            id={`${id}-${at}`}
            data-at={at}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            className={at === active ? 'palette-hit option active' : 'palette-hit option'}
            onClick={(event) => choose(hit.entry, event.metaKey || event.ctrlKey)}
          >
            <Icon name={hit.entry.icon} size={15} />
            <span className="ellipsis grow">
              <Label hit={hit} />
            </span>
            {hit.entry.note !== '' && (
              <span className="palette-note ellipsis note">{hit.entry.note}</span>
            )}
          </div>
        );
      })}
    </div>
  );
}

interface Numbered {
  readonly group: HitGroup;
  readonly from: number;
}

/** Groups with the index of their first result. */
function numbered(groups: readonly HitGroup[]): readonly Numbered[] {
  let from = 0;
  return groups.map((group) => {
    const first = from;
    from += group.hits.length;
    return { group, from: first };
  });
}

interface SearchProps {
  readonly id: string;
  readonly placeholder: string;
  readonly typed: string;
  readonly active: number;
  readonly type: (text: string) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

function Search({ id, placeholder, typed, active, type, onKeyDown }: SearchProps): ReactNode {
  return (
    <div className="palette-search flex muted">
      <Icon name="search" size={17} />
      <input
        // biome-ignore lint/a11y/noAutofocus: the user has just opened this search
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={active >= 0 ? `${id}-${active}` : undefined}
        aria-autocomplete="list"
        aria-label="Find anything"
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        value={typed}
        onChange={(event) => type(event.target.value)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

function Keys(): ReactNode {
  return (
    <div className="palette-keys wrap note" aria-hidden="true">
      <span>
        <kbd>↑</kbd> <kbd>↓</kbd> select
      </span>
      <span>
        <kbd>Enter</kbd> open
      </span>
      <span>
        <kbd>Ctrl Enter</kbd> open in another tab
      </span>
      <span>
        <kbd>Esc</kbd> close
      </span>
    </div>
  );
}

interface DialogProps extends Omit<Props, 'selection'> {
  readonly entries: readonly Entry[];
  readonly placeholder: string;
}

function PaletteDialog({ runs, entries, close, placeholder }: DialogProps): ReactNode {
  const { go, href, backTo } = useNavigation();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [active, setActive] = useState(0);
  const [commands] = useState<readonly Command[]>(offeredCommands);
  const [recent] = useState(() => readRecent(RECENT));
  const all = useMemo(
    () => [
      ...viewEntries(views, backTo),
      ...commandEntries(commands),
      ...runEntries(runs),
      ...entries,
    ],
    [backTo, commands, runs, entries],
  );
  const query = useDeferredValue(typed);
  const groupsFor = useCallback(
    (text: string) => (text.trim() === '' ? firstGroups(all, recent) : hitsFor(all, text)),
    [all, recent],
  );
  const groups = useMemo(() => groupsFor(query), [groupsFor, query]);
  const hits = groups.flatMap((group) => group.hits);
  const at = Math.min(active, hits.length - 1);
  useEffect(() => {
    dialog.current?.querySelector(`[data-at="${at}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  const choose = (entry: Entry, isElsewhere: boolean): void => {
    addRecent(RECENT, entry.key);
    if (entry.to && isElsewhere) {
      window.open(href(entry.to), '_blank', 'noopener');
      return;
    }
    dialog.current?.close();
    if (entry.to) go(entry.to);
    // Another dialog opens after this one is closed.
    else if (entry.run) setTimeout(entry.run);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = movedIndex(event.key, at, hits.length, { isTyped: true, isRing: true });
    // The results may be older than the typed text.
    const hit = query === typed ? hits[at] : groupsFor(typed).flatMap((group) => group.hits)[0];
    if (next !== null) setActive(next);
    else if (event.key === 'Enter' && hit) choose(hit.entry, event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog dialog={dialog} className="palette" label="Find anything" close={close}>
      <div className="palette-box column">
        <Search
          id={id}
          placeholder={placeholder}
          typed={typed}
          active={at}
          type={(text) => {
            setTyped(text);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
        />
        <div className="palette-list" role="listbox" id={`${id}-list`} aria-label="Results">
          {numbered(groups).map(({ group, from }) => (
            <Group key={group.kind} group={group} id={id} from={from} active={at} choose={choose} />
          ))}
        </div>
        {hits.length === 0 && <p className="palette-none muted">No results for “{query}”.</p>}
        <p className="visually-hidden" role="status">
          {typed === '' ? '' : plural(hits.length, 'result')}
        </p>
        <Keys />
      </div>
    </Dialog>
  );
}

function RecordingDialog(props: Props & { readonly selection: Selection }): ReactNode {
  const elsewhere = useElsewhereEntries(props.selection);
  const traceEntries = useRecordingEntries(props.selection);
  const entries = useMemo(() => [...elsewhere, ...traceEntries], [elsewhere, traceEntries]);
  return (
    <PaletteDialog
      {...props}
      entries={entries}
      placeholder="A view, run, rank, step, finding, operator, kernel, module, action…"
    />
  );
}

/** The command palette: a search over views, runs, ranks, steps, findings, names and actions. */
export default function Palette({ runs, selection, close }: Props): ReactNode {
  if (selection) return <RecordingDialog runs={runs} selection={selection} close={close} />;
  return (
    <PaletteDialog
      runs={runs}
      entries={NOTHING}
      close={close}
      placeholder="A view, a run, an action…"
    />
  );
}
