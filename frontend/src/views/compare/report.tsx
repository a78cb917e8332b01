import { type ReactNode, type RefObject, useRef } from 'react';
import type { ComparisonResult } from '../../api/types.gen';
import { plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Card } from '../../widgets/card';
import { Copy } from '../../widgets/copy';
import { Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Problems } from '../../widgets/problems';
import { Prose } from '../../widgets/prose';
import { Tabs } from '../../widgets/tabs';
import { AdviceCard } from './advice_card';
import { Comparability } from './comparability';
import { PartsList } from './parts_list';
import { isComparable, sizeOf, verdictOf, verdictText } from './phrases';
import { RowsTable } from './rows_table';
import { hasSelectedSteps } from './selected_steps';
import { asBefore, nameOf, type Side } from './sides';
import { StepsCard } from './steps_card';
import { sourceOf } from './waterfall';
import { WaterfallChart } from './waterfall_chart';

interface Props {
  readonly data: ComparisonResult;
  readonly before: Side;
  readonly after: Side;
}

type DataProps = Pick<Props, 'data'>;

/** A number and its unit on one line. */
const unbroken = (text: string): string => text.replaceAll(/(?<=\d) /g, '\u00a0');

function VerdictLine({ data }: DataProps): ReactNode {
  const { comparison } = data;
  const { what, before, after, change, because, tone } = verdictOf(comparison);
  return (
    <div>
      <p className="compare-headline">
        {what} <strong>{before}</strong> → <strong>{after}</strong>,{' '}
        <span className={`headline-change tone-${tone}`}>{change}</span>
        {because !== '' && <span className="muted">; {unbroken(because)}</span>}{' '}
        <Copy text={() => verdictText(comparison)} label="Copy the verdict" quiet />
      </p>
      <p className="muted">
        The change of the step: {data.significance}
        {data.interval === '' ? '' : `; ${data.interval}`}. Before: {sizeOf(comparison.before)}.
        After: {sizeOf(comparison.after)}.
      </p>
    </div>
  );
}

/** Reasons to doubt the comparison. */
export function caveatsOf({ comparison, before, after, is_same }: ComparisonResult): string[] {
  const pendingCount = before.waiting_count + after.waiting_count;
  return [
    is_same
      ? 'Both sides are the same steps: nothing can have changed. Select another baseline, or other steps.'
      : '',
    pendingCount > 0
      ? `${plural(pendingCount, 'trace is', 'traces are')} still to be read: the figures may change.`
      : '',
    ...comparison.warnings,
  ].filter((text) => text !== '');
}

/** The recorded settings that differ. */
function Settings({ data }: DataProps): ReactNode {
  const { settings } = data.comparison;
  if (settings.length === 0) return null;
  return (
    <section className="card compare-settings" aria-label="Settings that differ">
      <h2>Settings that differ</h2>
      <Facts
        className="facts"
        facts={settings.map(({ label, before, after }) => [label, `${before} → ${after}`])}
      />
    </section>
  );
}

function Caveats({ data }: DataProps): ReactNode {
  const caveats = caveatsOf(data);
  if (caveats.length === 0) return null;
  return (
    <section className="card compare-doubts notice-warn" aria-label="Caveats">
      <h2 className="flex">
        <Icon name="warning" tone="warn" /> Caveats
      </h2>
      <ul className="bullets">
        {caveats.map((text) => (
          <li key={text}>
            <Prose text={text} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface TablesProps extends Props {
  readonly target: RefObject<HTMLElement | null>;
}

function Tables({ data, before, after, target }: TablesProps): ReactNode {
  const { operators, device_work: device } = data.comparison;
  const { modules, status_labels: labels } = data;
  const tables = {
    operators: {
      rows: operators,
      label: 'Operators before and after',
      none: 'No operator was recorded on either side.',
    },
    device: {
      rows: device,
      label: 'Device work before and after',
      none: 'No device work was recorded on either side.',
    },
    modules: {
      rows: modules,
      label: 'Modules before and after',
      none: 'One side has no modules. Record them with profile(with_stack=True, with_modules=True).',
    },
  };
  return (
    <section className="card compare-tables" ref={target}>
      <Tabs
        label="Changes by row"
        tabs={[
          { id: 'operators', label: 'Operators', count: operators.length },
          { id: 'device', label: 'Device work', count: device.length },
          { id: 'modules', label: 'Modules', count: modules.length },
        ]}
        actions={
          <Goto
            to={{ ...asBefore(before), view: 'flame', options: { diff: 'base' } }}
            className="button small"
            title={`${nameOf(before)} and ${nameOf(after)} in one flame graph`}
          >
            <Icon name="flame" size={15} /> Differential flame graph
          </Goto>
        }
      >
        {(tab) => (
          <RowsTable key={tab} name={tab} {...{ labels, before, after }} {...tables[tab]} />
        )}
      </Tabs>
    </section>
  );
}

/** Opens the rows of a category of the step. */
function useOpening(data: ComparisonResult, tables: RefObject<HTMLElement | null>) {
  const { location, go } = useNavigation();
  return (category: string): (() => void) | null => {
    const source = sourceOf(category, data.comparison.device_work.length > 0);
    if (!source) return null;
    const tab = source.tab === 'operators' ? null : source.tab;
    const changes = { tab, only: 'all', kind: source.kind ?? null };
    return () => {
      go({
        search: source.search ?? '',
        options: withOptions(location.options, changes),
      });
      tables.current?.scrollIntoView({ block: 'start' });
    };
  };
}

export function ComparisonReport({ data, before, after }: Props): ReactNode {
  const tables = useRef<HTMLElement>(null);
  const open = useOpening(data, tables);
  const isOfSteps = hasSelectedSteps(useNavigation().location.options);
  const { comparison } = data;
  const hasSteps = comparison.before.step_count > 0 && comparison.after.step_count > 0;
  const hasDevices = comparison.idle.length + comparison.figures.length > 0;
  const per = hasSteps ? 'per step' : 'over the whole trace';
  return (
    <>
      <Comparability of={comparison.comparability} />
      <div className={isComparable(comparison) ? 'stack' : 'stack compare-neutral'}>
        <VerdictLine data={data} />
        <Problems problems={[...data.before.problems, ...data.after.problems]} />
        <Settings data={data} />
        <Caveats data={data} />
        <div className="compare-main">
          <Card title="Changes by category" note={`${per}; click a category to see its rows`}>
            <div className="scroll-x">
              <WaterfallChart comparison={comparison} onOpen={open} />
            </div>
          </Card>
          <StepsCard data={data} />
        </div>
        {!isOfSteps && <AdviceCard comparison={comparison} before={before} />}
        {hasDevices && (
          <div className="compare-pair">
            <PartsList
              title="Idle causes of the device"
              note={`${per}, of the busiest device; not tested`}
              parts={comparison.idle}
              isOneScale
              none="No device was idle, or none was recorded."
            />
            <PartsList
              title="Device utilization"
              note="means over traces; not tested"
              parts={comparison.figures}
              isOneScale={false}
              none="No device was recorded on both sides."
            />
          </div>
        )}
        <Tables data={data} before={before} after={after} target={tables} />
        <details className="compare-test">
          <summary>How significance is tested, and which rows are listed</summary>
          <p>{data.test}</p>
          <p>
            Rows are matched by name, never by position. Rows below a thousandth of a step on both
            sides are left out, unless they are new or gone.
          </p>
        </details>
      </div>
    </>
  );
}
