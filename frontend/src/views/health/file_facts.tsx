import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { bytes, count, plural, quantityExact, share } from '../../core/format';
import { cutOffAt, lostBytes, ofNature, worthOf } from '../../core/health';
import type { Selection } from '../../state/selection';
import { Copy } from '../../widgets/copy';
import { type Fact, Facts } from '../../widgets/facts';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly worker: WorkerReport;
  readonly selection: Selection;
}

const ICONS = { good: 'passed', info: 'info', warning: 'warning', critical: 'critical' } as const;

/** The numbers behind the headline. */
function summary({ health, events, inflated_bytes }: WorkerReport): string {
  const damage = ofNature(health, 'damage');
  const gaps = ofNature(health, 'gap').length;
  const lost = lostBytes(health);
  const read = `${plural(events, 'event')} were read${inflated_bytes > 0 ? ` from ${bytes(inflated_bytes)} of JSON` : ''}`;
  const parts = [
    damage.length === 0
      ? 'no damage, loss or repair'
      : `${plural(damage.length, 'kind')} of damage`,
    lost > 0 ? `${plural(lost, 'byte')} lost` : '',
    gaps > 0 ? `${plural(gaps, 'item')} not recorded` : '',
  ];
  return `${read}: ${parts.filter((part) => part !== '').join(', ')}.`;
}

const unknown = <span className="muted">unknown</span>;

/** A size of 0 is unknown. */
const size = (value: number): ReactNode => (value > 0 ? bytes(value) : unknown);

function factsOf({ worker, selection }: Props): Fact[] {
  const { file_bytes } = selection.span;
  const { inflated_bytes: whole, health, rank } = worker;
  const cut = cutOffAt(health);
  const lost = lostBytes(health);
  return [
    ['On disk', size(file_bytes), quantityExact(file_bytes, 'bytes')],
    ['JSON', size(whole), quantityExact(whole, 'bytes')],
    ['Events', count(worker.events)],
    ['Read', cut === null ? 'completely' : `up to byte ${count(cut)}`],
    [
      'Lost',
      lost === 0 ? (
        'nothing'
      ) : (
        <span key="lost">
          {bytes(lost)} {whole > 0 && <small>{share(lost / whole)}</small>}
        </span>
      ),
    ],
    ['Written by', worker.producer || unknown],
    ['Dialect', worker.dialect],
    ['Read by', worker.reader || unknown],
    rank !== null && ['Rank', rank],
  ];
}

/** The file, and how far it can be trusted. */
export function FileFacts({ worker, selection }: Props): ReactNode {
  const { tone, title } = worthOf(worker.health);
  return (
    <section className={`card worth worth-${tone}`} aria-labelledby="worth">
      <span className="round-icon">
        <Icon name={ICONS[tone]} size={22} />
      </span>
      <div className="worth-words">
        <h2 id="worth">{title}</h2>
        <p>{summary(worker)}</p>
        <p className="worth-file wrap note">
          <code>{selection.span.file}</code>
          {worker.fingerprint !== '' && (
            <span title="Identical only for traces with the same events">
              fingerprint <code>{worker.fingerprint}</code>
            </span>
          )}
          <Copy text={selection.span.file} label="Copy name" quiet />
        </p>
      </div>
      <Facts className="facts large" facts={factsOf({ worker, selection })} />
    </section>
  );
}
