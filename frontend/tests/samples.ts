/** Outcomes as the API sends them. */
import type {
  HealthItem,
  MergedOutcome,
  Outcome,
  RunReport,
  WorkerReport,
} from '../src/api/types.gen';

export function outcome(patch: Partial<Outcome>): Outcome {
  return {
    rule: 'item-sync',
    title: 'Reading single values back stalls the step',
    category: 'synchronisation',
    status: 'found',
    worker: 'worker0',
    span: '1',
    trace: 't1',
    severity: null,
    confidence: null,
    claim: null,
    message: '',
    why: '',
    evidence: [],
    events: [],
    fix: null,
    reason: null,
    remedy: null,
    links: [],
    doubts: [],
    tables: [],
    locations: [],
    effort: null,
    risk: null,
    life_cycle: 'stable',
    is_symptom: false,
    reports_missing_data: false,
    fingerprint: '',
    package: '',
    culprit: '',
    suppressed_by: '',
    baseline: '',
    blamed: [],
    ...patch,
  };
}

/** Repaired damage by default. */
export function health(patch: Partial<HealthItem> = {}): HealthItem {
  return {
    kind: 'invalid-escape',
    severity: 'info',
    count: 1,
    message: 'a backslash begins no escape that JSON knows',
    remedy: '',
    nature: 'damage',
    of_count: null,
    action: '',
    lost_bytes: 0,
    examples: [],
    effect: 'none',
    affects: [],
    ...patch,
  };
}

export function claim(highNs: number): NonNullable<Outcome['claim']> {
  return {
    low_ns: highNs * 0.75,
    high_ns: highNs,
    share: highNs / 1e8,
    net_low_ns: highNs * 0.75,
    net_high_ns: highNs,
    net_share: highNs / 1e8,
    method: 'Estimated from idle time.',
    steps: '',
    counted_under: [],
    unrecorded_low_ns: null,
    unrecorded_high_ns: null,
    unrecorded_share: null,
    unrecorded_net_low_ns: null,
    unrecorded_net_high_ns: null,
    unrecorded_net_share: null,
    is_measured: false,
    steps_differ: false,
    decisive_step: 'recorded',
    holds_in: 'both',
    example_times: [],
    step_ranges: [],
  };
}

export function workerReport(patch: Partial<WorkerReport> = {}): WorkerReport {
  return {
    trace: 't1',
    name: 'worker0',
    span: '1',
    rank: null,
    events: 1200,
    dialect: 'cuda',
    synthetic: false,
    verdict: 'A step takes 100 ms.',
    step: {
      count: 6,
      mean_ns: 100_000_000,
      standard_deviation_ns: 1_000_000,
      breakdown_ns: { kernel: 60_000_000, dataloader: 40_000_000 },
      unrecorded: null,
    },
    devices: [],
    idle_ns: {},
    health: [],
    inflated_bytes: 0,
    reader: 'compiled scanner',
    producer: 'torch.profiler',
    fingerprint: '',
    record_next: [],
    profile_call: '',
    budget: [],
    saving: null,
    standing: null,
    file: '',
    settings: [],
    host: '',
    groups: [],
    world_size: null,
    is_training: null,
    wait_ns: null,
    outlook: null,
    outlook_withheld: '',
    ...patch,
  };
}

export function runReport(outcomes: Outcome[], patch: Partial<WorkerReport> = {}): RunReport {
  const workers = [workerReport(patch)];
  return {
    name: 'run',
    workers,
    outcomes,
    merged: [],
    verdict: '',
    job: null,
    representatives: [],
  };
}

/** A finding of several traces. */
export function mergedOutcome(patch: Partial<MergedOutcome>): MergedOutcome {
  return {
    outcome: outcome({}),
    traces: ['t1'],
    of_count: 1,
    where: '',
    low_ns: null,
    median_ns: null,
    high_ns: null,
    ranks: '',
    hosts: [],
    group: '',
    steps: '',
    when: '',
    related: [],
    related_more: 0,
    job_saving: null,
    ...patch,
  };
}
