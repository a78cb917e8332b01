/** The predicted step: sentences, bars, a table of its parts. */
import { type ReactNode, useRef } from 'react';
import type { WhatIfStep } from '../../api/types.gen';
import { column } from '../../core/columns';
import { type ExportTable, fileName } from '../../core/export';
import { change, duration, quantityExact, unbroken } from '../../core/format';
import { Card } from '../../widgets/card';
import { PlainTable } from '../../widgets/plain_table';
import { TableExport } from '../../widgets/table_export';
import { Bars, capital, partColour } from './bars';

interface Line {
  readonly name: string;
  readonly recordedNs: number;
  readonly simulatedNs: number;
  readonly isWhole: boolean;
}

const wholeOf = (step: WhatIfStep): Line => ({
  name: step.step_count > 0 ? 'mean step' : 'whole trace',
  recordedNs: step.recorded_ns,
  simulatedNs: step.simulated_ns,
  isWhole: true,
});

const partsOf = ({ parts }: WhatIfStep): readonly Line[] =>
  parts.map(({ name, recorded_ns, simulated_ns }) => ({
    name,
    recordedNs: recorded_ns,
    simulatedNs: simulated_ns,
    isWhole: false,
  }));

function exportOf(step: WhatIfStep): ExportTable {
  return {
    columns: [
      column('part', 'part', 'text', 'Parts of the path that determines the end.'),
      column('recorded', 'recorded', 'ns'),
      column('simulated', 'simulated', 'ns'),
    ],
    rows: [wholeOf(step), ...partsOf(step)].map(({ name, recordedNs, simulatedNs }) => [
      name,
      recordedNs,
      simulatedNs,
    ]),
  };
}

function Parts({ step }: { readonly step: WhatIfStep }): ReactNode {
  const exact = (ns: number): string => quantityExact(ns, 'ns');
  return (
    <PlainTable<Line>
      className="plain whatif-parts"
      label="Recorded and simulated times"
      rows={partsOf(step)}
      total={wholeOf(step)}
      keyOf={({ name }) => name}
      columns={[
        {
          label: <span title="Time on the path that determines the end">Limiting path</span>,
          isHeader: true,
          cell: ({ name, isWhole }) => (
            <span className="inline">
              {!isWhole && <span className="swatch" style={{ background: partColour(name) }} />}
              {capital(name)}
            </span>
          ),
        },
        {
          label: 'Recorded',
          isNumber: true,
          title: ({ recordedNs }) => exact(recordedNs),
          cell: ({ recordedNs }) => duration(recordedNs),
        },
        {
          label: 'Simulated',
          isNumber: true,
          title: ({ simulatedNs }) => exact(simulatedNs),
          cell: ({ simulatedNs }) => duration(simulatedNs),
        },
        {
          label: 'Change',
          isNumber: true,
          cell: ({ recordedNs, simulatedNs }) => {
            const percent = Math.round((simulatedNs / recordedNs - 1) * 100);
            return (
              <>
                {change(simulatedNs - recordedNs, 'ns')}
                {percent !== 0 && Number.isFinite(percent) && (
                  <span className="muted"> {change(percent, 'count')} %</span>
                )}
              </>
            );
          },
        },
      ]}
    />
  );
}

interface Props {
  readonly step: WhatIfStep;
  /** Names of the trace, for files. */
  readonly traceName: readonly string[];
  readonly isStale: boolean;
  /** Further buttons. */
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}

export function Result({ step, traceName, isStale, actions, children }: Props): ReactNode {
  const chart = useRef<HTMLDivElement>(null);
  return (
    <Card
      title={step.step_count > 0 ? 'Predicted step' : 'Predicted trace'}
      className={isStale ? 'whatif-result stale' : 'whatif-result'}
      label="Prediction"
      actions={
        <div className="row">
          {actions}{' '}
          <TableExport
            name={[...traceName, 'what-if']}
            note="Recorded and simulated times, in ns."
            table={() => exportOf(step)}
            picture={{
              element: chart,
              title: step.headline,
              file: fileName([...traceName, 'what-if'], 'png'),
            }}
          />
        </div>
      }
    >
      <p className="headline" aria-live="polite">
        {unbroken(step.headline)}
      </p>
      {step.limit !== '' && <p className="whatif-limit">{unbroken(step.limit)}</p>}
      {step.step_count === 0 && (
        <p className="note">
          No step was recorded: times are of the whole trace. Call <code>profiler.step()</code> in
          the training loop to mark steps.
        </p>
      )}
      {children}
      <div ref={chart}>
        <Bars step={step} />
      </div>
      <Parts step={step} />
      {step.assumptions.map((assumption) => (
        <p key={assumption} className="note">
          {unbroken(assumption)}
        </p>
      ))}
      <p className="note">{unbroken(step.fidelity)}</p>
    </Card>
  );
}
