import type { ReactNode } from 'react';
import type { HealthItem, RunReport } from '../../api/types.gen';
import { plural } from '../../core/format';
import { ofNature, reportOf } from '../../core/health';
import type { Selection } from '../../state/selection';
import { Empty } from '../../widgets/empty';
import { ExportMenu } from '../../widgets/export_menu';
import { ViewHeader } from '../../widgets/view_header';
import { FileFacts } from './file_facts';
import { Files } from './files';
import { Items } from './items';
import { RecordNext } from './record_next';
import { save } from './save';
import './health.css';

interface Props {
  readonly report: RunReport;
  readonly selection: Selection;
}

/** How much of what was found, in a few words. */
function noteOf(items: readonly HealthItem[]): string {
  const damage = ofNature(items, 'damage').length;
  const gaps = ofNature(items, 'gap').length;
  const notes = ofNature(items, 'note').length;
  const parts = [
    damage === 0 ? 'no damage' : `${plural(damage, 'kind')} of damage`,
    gaps === 0 ? 'nothing missing' : `${plural(gaps, 'thing')} not recorded`,
    notes === 0 ? '' : `${plural(notes, 'thing')} to know`,
  ];
  return parts.filter((part) => part !== '').join(', ');
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
      <ViewHeader title="Health" note={noteOf(worker.health)}>
        <ExportMenu
          note="CSV: what was found. JSON: all of this page."
          onExport={(format) => save({ worker, selection, format })}
        />
      </ViewHeader>
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
