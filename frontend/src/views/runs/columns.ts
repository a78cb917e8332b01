/** The columns of the table of runs: labels, meanings, widths. Pure. */
import type { SortKey } from './lines';

export interface RunColumn {
  readonly key: SortKey;
  readonly label: string;
  readonly help: string;
  /** In CSS; null: it takes what the others leave. */
  readonly width: string | null;
  readonly isNumber?: boolean;
}

export const RUN_COLUMNS: readonly RunColumn[] = [
  { key: 'name', label: 'Run', help: 'The folder of its traces', width: null },
  {
    key: 'step',
    label: 'Step time',
    help: 'Mean step, and the durations of the steps; of several traces, those of the slowest',
    width: 'var(--step-width)',
    isNumber: true,
  },
  {
    key: 'busy',
    label: 'Busy',
    help: 'Fraction of the recorded steps in which the device works; of several traces, their mean',
    width: '84px',
    isNumber: true,
  },
  { key: 'steps', label: 'Steps', help: 'Recorded complete steps', width: '70px', isNumber: true },
  { key: 'batch', label: 'Batch', help: 'Samples per step', width: '70px', isNumber: true },
  {
    key: 'finding',
    label: 'First finding',
    help:
      'First finding of the advice, with its potential saving. Order: by severity, then by the likely saving as a ' +
      'fraction of the step, which is the geometric mean of its least and greatest value',
    width: 'var(--finding-width)',
  },
  {
    key: 'saving',
    label: 'All savings',
    help: 'Potential saving of all findings together, each part of the step counted once',
    width: '106px',
    isNumber: true,
  },
  {
    key: 'health',
    label: 'Health',
    help: 'Worst damage of its files',
    width: 'var(--health-width)',
  },
  {
    key: 'recorded',
    label: 'Recorded',
    help: 'When its last trace was recorded, from the name of the file',
    width: '106px',
  },
];
