import { type ReactNode, type RefObject, useMemo, useState } from 'react';
import type { Runs, TrendPoint, Trends } from '../../api/types.gen';
import { plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { PanelCard } from './panel_card';
import { isEmpty, panelsOf, tableOf, verdictOf } from './panels';
import { type Axis, labelOf, nameOf, placesOf, recordingOf, type Scope } from './points';
import { TrendsTable } from './trends_table';

const SCHEDULE = `profile(
    schedule=torch.profiler.schedule(wait=50, warmup=3, active=5, repeat=10),
    on_trace_ready=torch.profiler.tensorboard_trace_handler("log/run"),
)`;

/** One point is no trend. */
function TooFew({ trends }: { readonly trends: Trends }): ReactNode {
  const waiting = trends.waiting_count;
  return (
    <Empty icon="trends" title="A trend takes two recordings, and there is one">
      {waiting > 0 && <p>{plural(waiting, 'more recording')} will follow when read.</p>}
      <p>
        Choose another scope above, or have the profiler record every so often while the job runs, a
        span each:
      </p>
      <Code code={SCHEDULE} />
    </Empty>
  );
}

/** What is not in the charts. */
function missing({ waiting_count, unreadable_count }: Trends): string {
  const words = [
    waiting_count > 0 ? `${plural(waiting_count, 'recording')} still to be read` : '',
    unreadable_count > 0 ? `${plural(unreadable_count, 'file')} that cannot be read` : '',
  ].filter((word) => word !== '');
  return words.length === 0 ? '' : `without ${words.join(' and ')}`;
}

interface Props {
  readonly runs: Runs;
  readonly trends: Trends;
  readonly scope: Scope;
  readonly axis: Axis;
  readonly selection: Selection;
  /** Is given the charts, for a picture of them. */
  readonly charts?: RefObject<HTMLDivElement | null>;
}

/** The charts with one cursor for all, and the table beside them. */
export function TrendsReport(props: Props): ReactNode {
  const { runs, trends, scope, axis, selection, charts } = props;
  const { go } = useNavigation();
  const [hovered, hover] = useState<number | null>(null);
  const { points } = trends;
  const panels = useMemo(() => {
    const all = panelsOf(trends);
    // What was not recorded is said in short cards behind the charts.
    return [...all.filter((panel) => !isEmpty(panel)), ...all.filter(isEmpty)];
  }, [trends]);
  const table = useMemo(() => tableOf(trends, scope), [trends, scope]);
  const xs = useMemo(() => placesOf(points, runs, axis), [points, runs, axis]);
  const last: TrendPoint | undefined = points.at(-1);
  if (points.length < 2 || !last) return <TooFew trends={trends} />;
  const shown = points.findIndex(({ traces }) => traces.includes(selection.span.trace));
  const chosen = shown < 0 ? null : shown;
  const open = (at: number): void => {
    const point = points[at];
    const found = point && recordingOf(runs, point);
    if (!found) return;
    const { run, worker, span } = found;
    go({ view: 'overview', run: run.id, worker: worker.name, span: span.label });
  };
  const at = hovered ?? points.length - 1;
  const name = nameOf(points[at] ?? last, scope, points);
  const where = hovered === null ? `last: ${name}` : name;
  const labels = points.map((point) => labelOf(point, scope));
  return (
    <div className="stack">
      <p className="trends-verdict">
        {verdictOf(points, scope)} <span className="muted">{missing(trends)}</span>
      </p>
      <div className="trends-grid" ref={charts}>
        {panels.map((panel) => (
          <PanelCard
            key={panel.id}
            panel={panel}
            at={at}
            where={where}
            chart={{ xs, labels, hovered, onHover: hover, chosen, onChoose: open }}
          />
        ))}
      </div>
      <TrendsTable
        table={table}
        isOneSeries={scope !== 'all'}
        hovered={hovered}
        chosen={chosen}
        onHover={hover}
        onChoose={open}
      />
    </div>
  );
}
