import { type ReactNode, type RefObject, useRef } from 'react';
import type { ComparisonAnswer } from '../../api/types.gen';
import { plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Problems } from '../../widgets/problems';
import { Prose } from '../../widgets/prose';
import { Tabs } from '../../widgets/tabs';
import { AdviceCard } from './advice_card';
import { PartsList } from './parts_list';
import { RowsTable } from './rows_table';
import { asBefore, nameOf, type Side } from './sides';
import { StepsCard } from './steps_card';
import { behind } from './waterfall';
import { WaterfallChart } from './waterfall_chart';
import { madeOf, sureness, verdictOf, verdictText } from './words';

interface Props {
  readonly answer: ComparisonAnswer;
  readonly before: Side;
  readonly after: Side;
}

type OfAnswer = Pick<Props, 'answer'>;

/** A number and its unit on one line. */
const unbroken = (text: string): string => text.replaceAll(/(?<=\d) /g, '\u00a0');

function VerdictLine({ answer }: OfAnswer): ReactNode {
  const { comparison } = answer;
  const { what, before, after, change, because, tone } = verdictOf(comparison);
  return (
    <div className="compare-verdict">
      <p className="compare-headline">
        {what} <strong>{before}</strong> → <strong>{after}</strong>,{' '}
        <span className={`headline-change tone-${tone}`}>{change}</span>
        {because !== '' && <span className="headline-because">; {unbroken(because)}</span>}{' '}
        <Copy text={() => verdictText(comparison)} label="Copy the verdict" quiet />
      </p>
      <p className="muted">
        The step’s change is {sureness(comparison.step)}. Before: {madeOf(comparison.before)}.
        After: {madeOf(comparison.after)}.
      </p>
    </div>
  );
}

/** What speaks against believing the figures. */
export function doubtsOf({ comparison, before, after, ...about }: ComparisonAnswer): string[] {
  const waiting = before.waiting_count + after.waiting_count;
  const others = about.has_other_devices
    ? comparison.warnings.filter((text) => !text.startsWith('The device was '))
    : comparison.warnings;
  return [
    about.is_same
      ? 'Both sides are the same recordings: nothing can have changed. Choose another one as before.'
      : '',
    waiting > 0
      ? `${plural(waiting, 'recording is', 'recordings are')} still to be read: with them the figures may come out otherwise.`
      : '',
    about.has_other_devices
      ? `The devices are different: ${before.devices} before, ${after.devices} after. Times tell of the devices as well as of the change.`
      : '',
    ...others,
  ].filter((text) => text !== '');
}

/** Which recorded settings of the run differ: often the answer. */
function Settings({ answer }: OfAnswer): ReactNode {
  const { settings } = answer.comparison;
  if (settings.length === 0) return null;
  return (
    <section className="card compare-settings" aria-label="Settings that differ">
      <h2>Settings that differ</h2>
      <dl>
        {settings.map(({ name, label, before, after }) => (
          <div key={name}>
            <dt>{label}</dt>
            <dd>
              {before} → {after}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Doubts({ answer }: OfAnswer): ReactNode {
  const doubts = doubtsOf(answer);
  if (doubts.length === 0) return null;
  return (
    <section className="card compare-doubts" aria-label="What to keep in mind">
      <h2>
        <Icon name="warning" /> What to keep in mind
      </h2>
      <ul>
        {doubts.map((text) => (
          <li key={text}>
            <Prose text={text} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface TablesProps extends Props {
  readonly place: RefObject<HTMLElement | null>;
}

function Tables({ answer, before, after, place }: TablesProps): ReactNode {
  const { operators, device_work: device } = answer.comparison;
  const { modules } = answer;
  const tables = {
    operators: {
      rows: operators,
      label: 'Operators before and after',
      none: 'No operator was recorded on either side.',
    },
    device: {
      rows: device,
      label: 'Device work before and after',
      none: 'No work on a device was recorded on either side.',
    },
    modules: {
      rows: modules,
      label: 'Modules before and after',
      none: 'One of the sides has no modules recorded: profile(with_stack=True, with_modules=True).',
    },
  };
  return (
    <section className="card compare-tables" ref={place}>
      <Tabs
        label="What changed, row by row"
        tabs={[
          { id: 'operators', label: 'Operators', count: operators.length },
          { id: 'device', label: 'Device work', count: device.length },
          { id: 'modules', label: 'Modules', count: modules.length },
        ]}
        actions={
          <Goto
            to={{ ...asBefore(before), view: 'flame', options: { diff: 'base' } }}
            className="button flame-link"
            title={`${nameOf(before)} and ${nameOf(after)} in one flame graph`}
          >
            <Icon name="flame" size={15} /> Differential flame graph
          </Goto>
        }
      >
        {(tab) => <RowsTable key={tab} name={tab} before={before} after={after} {...tables[tab]} />}
      </Tabs>
    </section>
  );
}

/** Leads from a category of the step to the rows behind it. */
function useOpening(answer: ComparisonAnswer, place: RefObject<HTMLElement | null>) {
  const { location, go } = useNavigation();
  return (category: string): (() => void) | null => {
    const found = behind(category, answer.comparison.device_work.length > 0);
    if (!found) return null;
    const tab = found.tab === 'operators' ? null : found.tab;
    const options = withOption(withOption(location.options, 'tab', tab), 'only', 'all');
    return () => {
      go({ search: found.search ?? '', options: withOption(options, 'kind', found.kind ?? null) });
      place.current?.scrollIntoView({ block: 'start' });
    };
  };
}

export function ComparisonReport({ answer, before, after }: Props): ReactNode {
  const place = useRef<HTMLElement>(null);
  const open = useOpening(answer, place);
  const { comparison } = answer;
  const hasSteps = comparison.before.step_count > 0 && comparison.after.step_count > 0;
  const hasDevices = comparison.idle.length + comparison.figures.length > 0;
  const per = hasSteps ? 'a step' : 'of the whole recording';
  return (
    <div className="stack">
      <VerdictLine answer={answer} />
      <Problems problems={[...answer.before.problems, ...answer.after.problems]} />
      <Settings answer={answer} />
      <Doubts answer={answer} />
      <div className="compare-main">
        <section className="card">
          <div className="card-head">
            <h2>Where the difference is</h2>
            <p>{per}; a category leads to what is behind it</p>
          </div>
          <div className="scroll-x">
            <WaterfallChart comparison={comparison} onOpen={open} />
          </div>
        </section>
        <StepsCard answer={answer} />
      </div>
      <AdviceCard comparison={comparison} before={before} />
      {hasDevices && (
        <div className="compare-pair">
          <PartsList
            title="Why the device idles"
            note={`${per}, of the busiest device; not tested`}
            parts={comparison.idle}
            isOneScale
            none="No device was idle, or none was recorded."
          />
          <PartsList
            title="How the device was used"
            note="means over recordings; not tested"
            parts={comparison.figures}
            isOneScale={false}
            none="No device was recorded on both sides."
          />
        </div>
      )}
      <Tables answer={answer} before={before} after={after} place={place} />
      <details className="compare-test">
        <summary>How changes are told from noise, and which rows there are</summary>
        <p>{answer.test}</p>
        <p>
          Rows are matched by what they are called, never by where they stand. What takes less than
          a thousandth of a step on both sides has no row, unless it is new or gone.
        </p>
      </details>
    </div>
  );
}
