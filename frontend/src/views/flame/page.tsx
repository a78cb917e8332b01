import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { type ReactNode, useDeferredValue, useMemo, useRef, useState } from 'react';
import { addressOf, api, type ParametersOf, type ResponseOf } from '../../api/client';
import { type Narrowing, useNarrowing } from '../../api/queries';
import type { FlameFunctions, FlameGraph } from '../../api/types.gen';
import { fileName } from '../../core/export';
import { plural } from '../../core/format';
import { type Matcher, matcherOf } from '../../core/search';
import { type Theme, useTheme } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import { useOption, withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { ExportMenu } from '../../widgets/export_menu';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import type { LegendEntry } from '../../widgets/png';
import { saveTable } from '../../widgets/save_table';
import { SearchBox } from '../../widgets/table/toolbar';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { type Comparison, useComparison } from './baseline';
import { changeColours, kindColour } from './colours';
import { Crumbs } from './crumbs';
import { Details } from './details';
import { FlameCanvas } from './flame';
import { Functions } from './functions';
import { amountOf, shareOf } from './labels';
import { kindOf, type Layout, layoutOf, matchesOf, NONE, type Node } from './layout';
import { exportOf } from './listing';
import { nodeOf, pathKeys } from './moves';
import {
  comparedRequest,
  type FlameData,
  type FlameRequest,
  type FlameSettings,
  hasWaits,
  requestOf,
  settingsOf,
} from './requests';
import { Toolbar } from './toolbar';
import '../../widgets/table/table.css';
import './flame.css';

/** Data of one trace or of two; a new request keeps the previous data until it arrives. */
function useFlameQuery<W extends FlameData>(
  trace: string,
  { path, parameters }: FlameRequest<W>,
  enabled: boolean,
): UseQueryResult<ResponseOf<`traces/{trace}/flame/${W}`>> {
  return useQuery({
    queryKey: ['flame', trace, path, parameters],
    queryFn: ({ signal }) =>
      api.get(path, { trace, ...parameters } as ParametersOf<typeof path>, signal),
    placeholderData: (previous, query) =>
      query?.queryKey[1] === trace &&
      String(query.queryKey[2]).endsWith(path.split('/').at(-1) ?? '')
        ? keepPreviousData(previous)
        : undefined,
    enabled,
  });
}

function requestFor<W extends FlameData>(
  what: W,
  { settings, trace, narrowing, comparison }: Shown,
): FlameRequest<W> {
  const { baseline } = comparison;
  if (baseline?.kind === 'trace')
    return comparedRequest(what, settings, { trace, baseline: baseline.trace });
  const before = baseline?.kind === 'time' ? baseline.time : null;
  return requestOf(what, settings, { narrowing, before });
}

interface Shown {
  readonly settings: FlameSettings;
  readonly trace: string;
  readonly narrowing: Narrowing | null;
  readonly comparison: Comparison;
}

const ABOUT: Readonly<Record<string, string>> = {
  host: 'of the host',
  device: 'of devices',
};

/** What is hidden: the time of frames that wait. */
function hiddenNote(graph: FlameGraph, settings: FlameSettings): string {
  if (!(settings.hidesWaits && hasWaits(settings))) return '';
  const scale = graph.is_per_step ? Math.max(1, graph.steps) : 1;
  return `; ${amountOf(graph.waiting / scale, graph.unit, graph.is_per_step)} of waiting hidden`;
}

function noteOf(graph: FlameGraph, { settings, narrowing }: Shown): string {
  const scale = graph.is_per_step ? Math.max(1, graph.steps) : 1;
  const value = amountOf(graph.whole / scale, graph.unit, graph.is_per_step);
  const of = graph.unit === 'bytes' ? `on ${graph.device} at its peak` : ABOUT[settings.measure];
  const steps = graph.steps > 0 && !narrowing ? `, ${plural(graph.steps, 'step')}` : '';
  const waits = hiddenNote(graph, settings);
  return `${value} ${of}${steps}, ${plural(graph.node_count, 'path')} of calls${waits}`;
}

interface LegendProps {
  readonly layout: Layout;
}

function Legend({ layout }: LegendProps): ReactNode {
  const theme = useTheme();
  const kinds = useMemo(() => {
    const used = new Set(layout.graph.parent.map((_, node) => kindOf(layout, node)));
    return layout.graph.kinds.filter(({ id }) => used.has(id) && id !== 'smaller');
  }, [layout]);
  if (layout.isCompared) {
    const { less, none, more } = changeColours(theme);
    return (
      <div className="flame-legend wrap note">
        <span>less than the baseline</span>
        <i
          className="flame-scale"
          style={{ background: `linear-gradient(90deg, ${less}, ${none}, ${more})` }}
        />
        <span>more</span>
        <span className="muted">Widths are the sum of both sides.</span>
      </div>
    );
  }
  return (
    <div className="flame-legend wrap note">
      {kinds.map(({ id, label }) => (
        <span key={id}>
          <i className="swatch" style={{ background: kindColour(id, theme) }} />
          {label}
        </span>
      ))}
    </div>
  );
}

interface BodyProps {
  readonly graph: FlameGraph;
  readonly functions: UseQueryResult<FlameFunctions>;
  readonly shown: Shown;
  readonly matcher: Matcher;
  readonly isStale: boolean;
  readonly picture: React.RefObject<HTMLDivElement | null>;
}

function Body({ graph, functions, shown, matcher, isStale, picture }: BodyProps): ReactNode {
  const { location, go } = useNavigation();
  const { settings } = shown;
  const layout = useMemo(() => layoutOf(graph), [graph]);
  const root = useMemo(() => nodeOf(layout, settings.root), [layout, settings.root]);
  const matches = useMemo(
    () => (matcher.kind === 'test' ? matchesOf(layout, matcher.test) : null),
    [layout, matcher],
  );
  const [selected, setChosen] = useState<{ layout: Layout; node: Node } | null>(null);
  const active = selected?.layout === layout ? selected.node : root;
  const [marked, setMarked] = useState<string | null>(null);
  const [list] = useOption('list', 'shown', ['shown', 'hidden']);
  const setRoot = (node: Node): void => {
    setChosen(null);
    const path = node === NONE ? null : pathKeys(layout, node);
    go({ options: withOptions(location.options, { root: path }) }, 'replace');
  };
  const setName = (
    name: string | null,
    direction: 'callees' | 'callers' = settings.direction,
  ): void => {
    setMarked(null);
    const changes = { name, root: null, direction: direction === 'callees' ? null : direction };
    go({ options: withOptions(location.options, changes) });
  };
  return (
    <div className={isStale ? 'flame-body stale' : 'flame-body'} aria-busy={isStale}>
      <div className="column grow">
        <Crumbs
          layout={layout}
          root={root}
          name={settings.name}
          onRoot={setRoot}
          onName={setName}
        />
        {graph.note !== '' && (
          <p className="flame-note flex muted">
            <Icon name="info" size={14} />
            <span>
              {graph.note}{' '}
              {graph.remedy !== '' && (
                <>
                  Record them with <code>{graph.remedy}</code>.
                </>
              )}
            </span>
          </p>
        )}
        <div className="flame-drawn" ref={picture}>
          {layout.whole > 0 ? (
            <FlameCanvas
              layout={layout}
              root={root}
              active={active}
              marked={marked}
              matches={matches}
              onActive={(node) => setChosen({ layout, node })}
              onRoot={setRoot}
            />
          ) : (
            <p className="flame-none flex muted">No data for this selection.</p>
          )}
        </div>
        <div className="flame-under wrap">
          <Legend layout={layout} />
          {matches && (
            <p role="status">
              {plural(matches.count, 'frame')} match{matches.count === 1 ? 'es' : ''}:{' '}
              <b>{shareOf(matches.weight, layout.whole)}</b> of all
            </p>
          )}
        </div>
        {active !== NONE && <Details layout={layout} node={active} root={root} onAlone={setName} />}
      </div>
      {list === 'shown' && (
        <Loaded query={functions} what="The functions">
          {(list) => (
            <Functions
              list={list}
              matcher={matcher}
              selected={settings.name}
              onMark={setMarked}
              onChoose={(name) => setName(name === settings.name ? null : name)}
            />
          )}
        </Loaded>
      )}
    </div>
  );
}

function speedscopeAddress({ settings, trace, narrowing }: Shown): string {
  const { path, parameters } = requestOf('speedscope', settings, { narrowing, before: null });
  const profile = addressOf(path, { trace, ...parameters });
  return `speedscope/index.html#profileURL=${encodeURIComponent(profile)}`;
}

/** The legend of an exported picture. */
function legendOf(graph: FlameGraph | undefined, theme: Theme): readonly LegendEntry[] {
  if (!graph) return [];
  if (graph.before_total.length > 0) {
    const { less, more } = changeColours(theme);
    return [
      { label: 'less than the baseline', colour: less },
      { label: 'more', colour: more },
    ];
  }
  const used = new Set(graph.name_kinds);
  return graph.kinds
    .filter(({ id }, at) => used.has(at) && id !== 'smaller')
    .map(({ id, label }) => ({ label, colour: kindColour(id, theme) }));
}

interface HeaderProps {
  readonly shown: Shown;
  readonly selection: Selection;
  readonly graph: FlameGraph | undefined;
  readonly functions: FlameFunctions | undefined;
  readonly matcher: Matcher;
  readonly picture: React.RefObject<HTMLDivElement | null>;
}

function Header({ shown, selection, graph, functions, matcher, picture }: HeaderProps): ReactNode {
  const { location, go } = useNavigation();
  const theme = useTheme();
  const [list, setList] = useOption('list', 'shown', ['shown', 'hidden']);
  const { settings, comparison } = shown;
  const traceName = [selection.run.name, selection.worker.name, selection.span.label];
  const parts = [settings.subject, ...(settings.subject === 'memory' ? [] : [settings.measure])];
  return (
    <ViewHeader
      title="Flame graph"
      note={graph && graph.empty === '' ? noteOf(graph, shown) : undefined}
    >
      <SearchBox
        value={location.search}
        label="Search functions"
        hasConditions={false}
        onChange={(search) => go({ search }, 'replace')}
        invalid={matcher.kind === 'invalid' ? matcher.message : null}
      />
      <Button
        aria-pressed={list === 'shown'}
        onClick={() => setList(list === 'shown' ? 'hidden' : 'shown')}
      >
        <Icon name="columns" size={15} /> Functions
      </Button>
      {comparison.baseline === null && import.meta.env.MODE !== 'shared' && (
        <a
          className="button"
          target="_blank"
          rel="noreferrer"
          href={speedscopeAddress(shown)}
          title="Open in the bundled speedscope; no data leaves this machine"
        >
          <Icon name="external" size={15} /> speedscope
        </a>
      )}
      <ExportMenu
        note="The functions as a table, or the picture as shown."
        onExport={
          functions &&
          ((format) => {
            const table = exportOf(functions);
            const about = { table: 'flame', trace: traceName, of: parts, search: location.search };
            saveTable({ name: [...traceName, 'flame', ...parts], format, table, about });
          })
        }
        picture={{
          element: picture,
          title: `Flame graph: ${parts.join(', ')}`,
          subtitle: traceName.join(', '),
          legend: legendOf(graph, theme),
          file: fileName([...traceName, 'flame', ...parts], 'png'),
        }}
      />
    </ViewHeader>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const { location } = useNavigation();
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const comparison = useComparison(selection);
  const picture = useRef<HTMLDivElement>(null);
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const shown: Shown = {
    settings: settingsOf(location),
    trace,
    narrowing: narrowing ?? null,
    comparison,
  };
  const isReady = narrowing !== undefined;
  const graph = useFlameQuery(trace, requestFor('graph', shown), isReady);
  const functions = useFlameQuery(trace, requestFor('functions', shown), isReady);
  const isOfSteps = comparison.baseline?.kind === 'trace' && narrowing;
  return (
    <div className="full-view column grow flame-view">
      <Header
        {...{ shown, selection, matcher, picture }}
        graph={graph.data}
        functions={functions.data}
      />
      <Toolbar
        settings={shown.settings}
        graph={graph.data}
        comparison={comparison}
        isNarrowed={!!narrowing}
      />
      {isOfSteps && (
        <p className="flame-note flex muted">
          <Icon name="info" size={14} />
          Traces are compared over all their complete steps, not over the selected time.
        </p>
      )}
      <Loaded query={graph} what="The flame graph">
        {(list) =>
          list.empty === '' ? (
            <Body
              {...{ functions, shown, matcher, picture }}
              graph={list}
              isStale={graph.isPlaceholderData}
            />
          ) : (
            <div className="page">
              <Empty icon="flame" title={list.empty}>
                {list.remedy !== '' && (
                  <>
                    <p>This records it:</p>
                    <Code code={list.remedy} />
                  </>
                )}
              </Empty>
            </div>
          )
        }
      </Loaded>
    </div>
  );
}
