import { type ReactNode, type RefObject, useMemo, useState } from 'react';
import type { Runs, TrendPoint, Trends } from '../../api/types.gen';
import { SmallMultiple, type SmallMultipleProps } from '../../charts/small_multiple';
import { plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { Card } from '../../widgets/card';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { isEmpty, type Panel, panelsOf, readingsAt, tableOf, verdictOf } from './panels';
import { type Axis, labelOf, nameOf, positionsOf, type Scope, selectionOf } from './points';
import { TrendsTable } from './trends_table';

const SCHEDULE = `profile(
    schedule=torch.profiler.schedule(wait=50, warmup=3, active=5, repeat=10),
    on_trace_ready=torch.profiler.tensorboard_trace_handler("log/run"),
)`;

function TooFew({ trends }: { readonly trends: Trends }): ReactNode {
  const waiting = trends.waiting_count;
  return (
    <Empty icon="trends" title="Not enough traces for a trend (needs 2, has 1)">
      {waiting > 0 && <p>{plural(waiting, 'more trace')} will follow once read.</p>}
      <p>
        Select another scope above, or let the profiler record a span repeatedly while the job runs:
      </p>
      <Code code={SCHEDULE} />
    </Empty>
  );
}

/** The traces that the charts lack. */
function missingNote({ waiting_count, unreadable_count }: Trends): string {
  const labels = [
    waiting_count > 0 ? `${plural(waiting_count, 'trace')} still to be read` : '',
    unreadable_count > 0 ? `${plural(unreadable_count, 'file')} that cannot be read` : '',
  ].filter((word) => word !== '');
  return labels.length === 0 ? '' : `without ${labels.join(' and ')}`;
}

interface PanelProps {
  readonly panel: Panel;
  /** The point whose values the head shows. */
  readonly at: number;
  readonly where: string;
  readonly chart: Pick<
    SmallMultipleProps,
    'xs' | 'labels' | 'hovered' | 'onHover' | 'chosen' | 'onChoose'
  >;
}

/** The chart of one metric over all points, with its values at the cursor. */
function PanelCard({ panel, at, where, chart }: PanelProps): ReactNode {
  const readings = readingsAt(panel, at);
  return (
    <Card className="panel" label={panel.title} title={panel.title} help={panel.help} note={where}>
      {isEmpty(panel) ? (
        <p className="muted panel-none">{panel.none}</p>
      ) : (
        <>
          <p className="panel-said wrap">
            {readings.map(({ series, text }) => (
              <span key={series.id}>
                <span
                  className={`swatch swatch-${series.kind}`}
                  style={{ background: series.colour }}
                />
                {series.label !== '' && <span className="muted">{series.label}</span>} {text}
              </span>
            ))}
            {readings.length === 0 && <span className="muted">none</span>}
          </p>
          <SmallMultiple
            series={panel.series}
            tickY={panel.tickY}
            steps={panel.steps}
            {...(panel.mostY === undefined ? {} : { mostY: panel.mostY })}
            {...chart}
          />
        </>
      )}
    </Card>
  );
}

interface Props {
  readonly runs: Runs;
  readonly trends: Trends;
  readonly scope: Scope;
  readonly axis: Axis;
  readonly selection: Selection;
  /** Receives the charts, for exports. */
  readonly charts?: RefObject<HTMLDivElement | null>;
}

/** The charts with a shared cursor, and the table. */
export function TrendsReport(props: Props): ReactNode {
  const { runs, trends, scope, axis, selection, charts } = props;
  const { go } = useNavigation();
  const [hovered, hover] = useState<number | null>(null);
  const { points } = trends;
  const panels = useMemo(() => {
    const all = panelsOf(trends);
    // Charts without data come last.
    return [...all.filter((panel) => !isEmpty(panel)), ...all.filter(isEmpty)];
  }, [trends]);
  const table = useMemo(() => tableOf(trends, scope), [trends, scope]);
  const xs = useMemo(() => positionsOf(points, runs, axis), [points, runs, axis]);
  const last: TrendPoint | undefined = points.at(-1);
  if (points.length < 2 || !last) return <TooFew trends={trends} />;
  const shown = points.findIndex(({ traces }) => traces.includes(selection.span.trace));
  const selected = shown < 0 ? null : shown;
  const open = (at: number): void => {
    const point = points[at];
    const selection = point && selectionOf(runs, point);
    if (!selection) return;
    const { run, worker, span } = selection;
    go({ view: 'overview', run: run.id, worker: worker.name, span: span.label });
  };
  const at = hovered ?? points.length - 1;
  const name = nameOf(points[at] ?? last, scope, points);
  const where = hovered === null ? `last: ${name}` : name;
  const labels = points.map((point) => labelOf(point, scope));
  return (
    <div className="stack">
      <p className="headline">
        {verdictOf(points, scope)} <span className="muted">{missingNote(trends)}</span>
      </p>
      <div className="trends-grid" ref={charts}>
        {panels.map((panel) => (
          <PanelCard
            key={panel.id}
            panel={panel}
            at={at}
            where={where}
            chart={{ xs, labels, hovered, onHover: hover, chosen: selected, onChoose: open }}
          />
        ))}
      </div>
      <TrendsTable
        table={table}
        isOneSeries={scope !== 'all'}
        hovered={hovered}
        selected={selected}
        onHover={hover}
        onChoose={open}
      />
    </div>
  );
}
