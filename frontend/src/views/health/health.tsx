import type { ReactNode } from 'react';
import type { RunReport } from '../../api/types.gen';
import { ofNature, reportOf } from '../../core/health';
import type { Selection } from '../../state/selection';
import { Empty } from '../../widgets/empty';
import { FileFacts } from './file_facts';
import { Files } from './files';
import { Items } from './items';
import { RecordNext } from './record_next';
import './health.css';

interface Props {
  readonly report: RunReport;
  readonly selection: Selection;
}

/** One recording as a file: what is wrong with it, what it lacks, and how to record that. */
export function Health({ report, selection }: Props): ReactNode {
  const { run, worker: chosen, span } = selection;
  const worker = reportOf(report, span.trace);
  if (!worker) {
    return (
      <Empty icon="info" title={`Nothing is known of ${chosen.name}, span ${span.label} yet`}>
        <p>This recording has just been read, or read again: its health comes in a moment.</p>
      </Empty>
    );
  }
  const outcomes = report.outcomes.filter((outcome) => outcome.trace === span.trace);
  const of = { outcomes, health: worker.health };
  return (
    <div className="health-view">
      <FileFacts worker={worker} selection={selection} />
      <div className={worker.profile_call === '' ? 'health-body' : 'health-body halves'}>
        <div className="stack">
          <Items
            title="Damage"
            note="what was found, and what was done about it"
            items={ofNature(of.health, 'damage')}
            outcomes={outcomes}
          />
          <Items
            title="Not recorded"
            note="nothing is wrong; it is just not there"
            items={ofNature(of.health, 'gap')}
            outcomes={outcomes}
          />
          <Items
            title="Good to know"
            note=""
            items={ofNature(of.health, 'note')}
            outcomes={outcomes}
          />
        </div>
        <RecordNext worker={worker} />
      </div>
      <Files run={run} trace={span.trace} />
    </div>
  );
}
