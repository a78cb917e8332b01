import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { bytes, count, plural, quantityExact, share } from '../../core/format';
import { cutOffAt, lostBytes, ofNature, worthOf } from '../../core/health';
import type { Selection } from '../../state/selection';
import { Copy } from '../../widgets/copy';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly worker: WorkerReport;
  readonly selection: Selection;
}

const ICONS = { good: 'passed', info: 'info', warning: 'warning', critical: 'critical' } as const;

/** The headline's reason, in numbers. */
function summary({ health, events, inflated_bytes }: WorkerReport): string {
  const damage = ofNature(health, 'damage');
  const gaps = ofNature(health, 'gap').length;
  const lost = lostBytes(health);
  const read = `${plural(events, 'event')} were read${inflated_bytes > 0 ? ` from ${bytes(inflated_bytes)} of JSON` : ''}`;
  const found = [
    damage.length === 0
      ? 'nothing was found damaged, lost or repaired'
      : `${plural(damage.length, 'kind')} of damage`,
    lost > 0 ? `${plural(lost, 'byte')} gave nothing` : '',
    gaps > 0 ? `${plural(gaps, 'thing')} not recorded` : '',
  ];
  return `${read}: ${found.filter((part) => part !== '').join(', ')}.`;
}

function Fact(props: {
  readonly label: string;
  readonly title?: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div title={props.title}>
      <dt>{props.label}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

const unknown = <span className="muted">not known</span>;

/** A size that is 0 is one that nobody knows. */
const size = (value: number): ReactNode => (value > 0 ? bytes(value) : unknown);

function Lost({ worker }: Pick<Props, 'worker'>): ReactNode {
  const lost = lostBytes(worker.health);
  if (lost === 0) return 'nothing';
  const whole = worker.inflated_bytes;
  return (
    <>
      {bytes(lost)} {whole > 0 && <small>{share(lost / whole)}</small>}
    </>
  );
}

function Facts({ worker, selection }: Props): ReactNode {
  const { span } = selection;
  const cut = cutOffAt(worker.health);
  return (
    <dl className="file-facts">
      <Fact label="On disk" title={quantityExact(span.file_bytes, 'bytes')}>
        {size(span.file_bytes)}
      </Fact>
      <Fact label="JSON" title={quantityExact(worker.inflated_bytes, 'bytes')}>
        {size(worker.inflated_bytes)}
      </Fact>
      <Fact label="Events">{count(worker.events)}</Fact>
      <Fact label="Read">{cut === null ? 'to its end' : `as far as byte ${count(cut)}`}</Fact>
      <Fact label="Lost">
        <Lost worker={worker} />
      </Fact>
      <Fact label="Written by">{worker.producer || unknown}</Fact>
      <Fact label="Dialect">{worker.dialect}</Fact>
      <Fact label="Read by">{worker.reader || unknown}</Fact>
      {worker.rank !== null && <Fact label="Rank">{worker.rank}</Fact>}
    </dl>
  );
}

/** Which file this is, and what it is worth. */
export function FileFacts({ worker, selection }: Props): ReactNode {
  const { tone, title } = worthOf(worker.health);
  return (
    <section className={`card worth worth-${tone}`} aria-labelledby="worth">
      <span className="worth-icon">
        <Icon name={ICONS[tone]} size={22} />
      </span>
      <div className="worth-words">
        <h2 id="worth">{title}</h2>
        <p>{summary(worker)}</p>
        <p className="worth-file">
          <code>{selection.span.file}</code>
          {worker.fingerprint !== '' && (
            <span title="The same for two recordings with the same events only.">
              fingerprint <code>{worker.fingerprint}</code>
            </span>
          )}
          <Copy text={selection.span.file} label="Copy name" quiet />
        </p>
      </div>
      <Facts worker={worker} selection={selection} />
    </section>
  );
}
