/* Generated from plugin/stepscope/api by `npm run types`; do not edit. */

/** Paths below `api/` that are read, each with its query and its response. */
export interface Gets {
  'runs': [object, Runs];
  'runs/{run}/advice': [{ trace?: string }, RunReport];
  'schema': [object, unknown];
  'openapi.json': [object, unknown];
  'comparison': [ComparisonQuery, ComparisonResult];
  'comparison/candidates': [{ run: string }, Candidates];
  'distributed': [{ run: string; span?: string }, Distributed];
  'distributed/steps': [DistributedStepsQuery, RankSteps];
  'distributed/ranks': [{ run: string; span?: string; step?: number }, RankBreakdown];
  'distributed/collectives': [DistributedCollectivesQuery, Collectives];
  'distributed/collective': [DistributedCollectiveQuery, CollectiveRanks];
  'distributed/groups': [{ run: string; span?: string }, Table];
  'distributed/devices': [{ run: string; span?: string }, Table];
  'distributed/all-to-all': [{ run: string; span?: string }, AllToAll];
  'traces/{trace}/file': [FileQuery, ArrayBuffer];
  'tools': [object, Tools];
  'traces/{trace}/flame/graph': [FlameGraphQuery, FlameGraph];
  'traces/{trace}/flame/functions': [FlameGraphQuery, FlameFunctions];
  'traces/{trace}/flame/speedscope': [FlameGraphQuery, unknown];
  'flame/compared/calls/graph': [FlameComparedCallsGraphQuery, FlameGraph];
  'flame/compared/calls/functions': [FlameComparedCallsGraphQuery, FlameFunctions];
  'flame/compared/modules/graph': [FlameComparedModulesGraphQuery, FlameGraph];
  'flame/compared/modules/functions': [FlameComparedModulesGraphQuery, FlameFunctions];
  'flame/compared/memory/graph': [FlameComparedMemoryGraphQuery, FlameGraph];
  'flame/compared/memory/functions': [FlameComparedMemoryGraphQuery, FlameFunctions];
  'traces/{trace}/operators': [{ start_ns?: number; end_ns?: number; group?: string }, Table];
  'traces/{trace}/kernels': [{ start_ns?: number; end_ns?: number; group?: string }, Table];
  'traces/{trace}/kernels/details': [KernelsDetailsQuery, KernelDetails];
  'traces/{trace}/kernels/durations': [{ start_ns?: number; end_ns?: number }, KernelDurations];
  'traces/{trace}/memory/curve': [MemoryCurveQuery, MemoryOverTime];
  'traces/{trace}/memory/holders': [MemoryHoldersQuery, MemoryHolders];
  'traces/{trace}/memory/allocations': [MemoryAllocationsQuery, MemoryAllocations];
  'traces/{trace}/memory/operators': [{ start_ns?: number; end_ns?: number; device?: string }, Table];
  'traces/{trace}/memory/growth': [{ start_ns?: number; end_ns?: number; device?: string }, MemoryGrowth];
  'traces/{trace}/memory/fragmentation': [{ start_ns?: number; end_ns?: number; device?: string }, MemoryFragmentation];
  'runs/{run}/memory-files': [object, MemoryFiles];
  'runs/{run}/memory-files/{file}': [object, MemoryFileReport];
  'traces/{trace}/modules': [ModulesQuery, Modules];
  'traces/{trace}/modules/work': [ModulesWorkQuery, ModuleWork];
  'traces/{trace}/names': [{ limit?: number }, Names];
  'traces/{trace}/operators/details': [OperatorsDetailsQuery, OperatorDetails];
  'traces/{trace}/overview': [{ start_ns?: number; end_ns?: number }, Overview];
  'query-tables': [object, QueryTables];
  'runs/{run}/query': [QueryQuery, QueryRows];
  'rules/{rule}': [object, RulePage];
  'runs/{run}/share': [{ most_bytes?: number }, ArrayBuffer];
  'tables': [object, Tables];
  'traces/{trace}/tables/{name}': [TablesQuery, Table];
  'runs/{run}/tables/all-to-all-traffic': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/clock-alignment': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/graph-kernels': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/graph-operators': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/matched-collectives': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/outlier-ranks': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/ranks': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/representative-ranks': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/stragglers': [TablesAllToAllTrafficQuery, Table];
  'runs/{run}/tables/trends': [TablesAllToAllTrafficQuery, Table];
  'traces/{trace}/timeline/tracks': [object, Timeline];
  'traces/{trace}/timeline/names': [object, TimelineNames];
  'traces/{trace}/timeline/tiles': [{ level: number; tile: number; tracks?: string }, ArrayBuffer];
  'traces/{trace}/timeline/counters': [{ track: number; level: number; tile: number }, TimelineCounter];
  'traces/{trace}/timeline/excerpt': [{ event?: number; event_time?: string; time?: string[] }, TimelineExcerpt];
  'traces/{trace}/timeline/slices/{event}': [object, TimelineSlice];
  'traces/{trace}/timeline/slices': [TimelineSlicesQuery, TimelineHits];
  'traces/{trace}/timeline/search': [TimelineSearchQuery, TimelineHits];
  'traces/{trace}/timeline/neighbour': [TimelineNeighbourQuery, TimelineNeighbour];
  'traces/{trace}/timeline/at': [{ track: number; row: number; time_ns: number }, TimelineNeighbour];
  'traces/{trace}/timeline/area': [{ start_ns: number; end_ns: number; tracks?: string }, TimelineArea];
  'trends': [TrendsQuery, Trends];
  'traces/{trace}/what-if': [WhatIfQuery, WhatIfStep];
  'traces/{trace}/what-if/names': [object, WhatIfNames];
  'traces/{trace}/what-if/fixes': [WhatIfQuery, WhatIfFixes];
  'traces/{trace}/what-if/timeline': [WhatIfTimelineQuery, WhatIfTimeline];
  'traces/{trace}/what-if/file': [WhatIfQuery, ArrayBuffer];
}

/** Paths below `api/` that change something. */
export interface Posts {
  'traces/{trace}/cancel': [object, Runs];
  'traces/{trace}/read': [object, Runs];
  'runs/{run}/cancel': [object, Runs];
  'runs/{run}/read': [object, Runs];
  'listing/cancel': [object, Runs];
  'listing/read': [object, Runs];
}

export interface ComparisonQuery {
  run: string;
  worker?: string;
  span?: string;
  steps?: string;
  base_run: string;
  base_worker?: string;
  base_span?: string;
  base_steps?: string;
}

export interface DistributedStepsQuery {
  run: string;
  span?: string;
  metric?: 'computing' | 'copies' | 'exposed' | 'idle' | 'late' | 'loading' | 'overlap' | 'own' | 'step' | 'waiting';
}

export interface DistributedCollectivesQuery {
  run: string;
  span?: string;
  step?: number;
  by?: 'each' | 'kind';
  worker?: string;
  limit?: number;
}

export interface DistributedCollectiveQuery { run: string; span?: string; worker: string; event: number; }

export interface FileQuery { start_ns?: number; end_ns?: number; is_repaired?: boolean; }

export interface FlameGraphQuery {
  start_ns?: number;
  end_ns?: number;
  frames?: 'all' | 'modules' | 'operators' | 'python' | 'user';
  by_class?: boolean;
  without_waits?: boolean;
  direction?: 'callees' | 'callers';
  name?: string;
  root?: string;
  pieces?: number;
  subject?: 'calls' | 'memory' | 'modules';
  measure?: 'device' | 'host';
  thread?: string;
  phase?: 'all' | 'backward' | 'forward' | 'rerun';
  device?: string;
  per_step?: boolean;
  before_start_ns?: number;
  before_end_ns?: number;
}

export interface FlameComparedCallsGraphQuery {
  start_ns?: number;
  end_ns?: number;
  frames?: 'all' | 'modules' | 'operators' | 'python' | 'user';
  by_class?: boolean;
  without_waits?: boolean;
  direction?: 'callees' | 'callers';
  name?: string;
  root?: string;
  pieces?: number;
  trace: string;
  baseline: string;
  measure?: 'device' | 'host';
}

export interface FlameComparedModulesGraphQuery {
  start_ns?: number;
  end_ns?: number;
  frames?: 'all' | 'modules' | 'operators' | 'python' | 'user';
  by_class?: boolean;
  without_waits?: boolean;
  direction?: 'callees' | 'callers';
  name?: string;
  root?: string;
  pieces?: number;
  trace: string;
  baseline: string;
  measure?: 'device' | 'host';
  phase?: 'all' | 'backward' | 'forward' | 'rerun';
}

export interface FlameComparedMemoryGraphQuery {
  start_ns?: number;
  end_ns?: number;
  frames?: 'all' | 'modules' | 'operators' | 'python' | 'user';
  by_class?: boolean;
  without_waits?: boolean;
  direction?: 'callees' | 'callers';
  name?: string;
  root?: string;
  pieces?: number;
  trace: string;
  baseline: string;
  device?: string;
}

export interface KernelsDetailsQuery {
  start_ns?: number;
  end_ns?: number;
  full_name: string;
  operator?: string;
  grid?: string;
  block?: string;
  device?: number;
  stream?: number;
}

export interface MemoryCurveQuery { start_ns?: number; end_ns?: number; device?: string; pixels?: number; }

export interface MemoryHoldersQuery {
  start_ns?: number;
  end_ns?: number;
  device?: string;
  by?: 'category' | 'lifetime' | 'module' | 'operator' | 'stack';
  moment_ns?: number;
}

export interface MemoryAllocationsQuery {
  start_ns?: number;
  end_ns?: number;
  device?: string;
  which?: 'alive' | 'born' | 'freed';
  state?: string;
  min_bytes?: number;
  max_bytes?: number;
  search?: string;
  sort?: string;
  descending?: boolean;
  limit?: number;
}

export interface ModulesQuery { start_ns?: number; end_ns?: number; by?: 'class' | 'instance'; }

export interface ModulesWorkQuery {
  start_ns?: number;
  end_ns?: number;
  row?: number;
  class_name?: string;
  within?: boolean;
}

export interface OperatorsDetailsQuery {
  start_ns?: number;
  end_ns?: number;
  name: string;
  kind?: string;
  group?: string;
  label?: string;
}

export interface QueryQuery { start_ns?: number; end_ns?: number; sql: string; trace?: string; }

export interface TablesQuery {
  start_ns?: number;
  end_ns?: number;
  sort?: string;
  descending?: boolean;
  limit?: number;
  search?: string;
}

export interface TablesAllToAllTrafficQuery {
  sort?: string;
  descending?: boolean;
  limit?: number;
  search?: string;
}

export interface TimelineSlicesQuery { start_ns: number; end_ns: number; track: number; limit?: number; }

export interface TimelineSearchQuery {
  q: string;
  case?: boolean;
  regex?: boolean;
  limit?: number;
  offset?: number;
  start_ns?: number;
}

export interface TimelineNeighbourQuery { event: number; direction: 'down' | 'left' | 'right' | 'up'; }

export interface TrendsQuery {
  run: string;
  scope?: 'all' | 'folder' | 'spans';
  worker?: string;
  most?: number;
}

export interface WhatIfQuery {
  host?: number;
  device?: number;
  scale?: string[];
  no_waits?: boolean;
  workers?: number;
  cores?: number;
  fix?: string[];
}

export interface WhatIfTimelineQuery {
  host?: number;
  device?: number;
  scale?: string[];
  no_waits?: boolean;
  workers?: number;
  cores?: number;
  fix?: string[];
  step?: number;
  pixels?: number;
}

/** All runs of the log directories. */
export interface Runs {
  schema: number; // Version of the API's JSON.
  logdir: string;
  scanning: boolean; // True until the first scan of the log directories ends.
  loading: boolean; // True while any file is queued or being read.
  has_pending_results: boolean; // True while results of runs are being computed from files that are read.
  runs: RunState[];
  problems: Problem[];
  looked_for: string; // The file names that count as traces.
  looked_at_count: number; // Files seen by the scan so far, traces or not.
  is_cancelled: boolean; // True where the user cancelled the scan.
}

/** A run: a folder with traces. */
export interface RunState {
  id: string;
  name: string;
  synthetic: boolean;
  state: 'cancelled' | 'queued' | 'reading' | 'ready' | 'unreadable';
  workers: Worker[];
  result: RunResult | null; // Null until a file is read and the advice on the run is merged.
}

/** One process of a run. */
export interface Worker {
  name: string;
  rank: number | null;
  spans: Span[];
  host: string | null; // The machine.
}

/** One trace file of a worker. */
export interface Span {
  trace: string;
  label: string; // `1`, `2`, … in order of recording.
  file: string; // The file's name, for display.
  state: 'cancelled' | 'queued' | 'reading' | 'ready' | 'unreadable';
  progress: Progress | null;
  problem: Problem | null;
  place: number | null; // Position in the queue.
  file_bytes: number; // Size of the file on disk.
  events: number | null; // Number of events.
  damage: 'critical' | 'info' | 'warning' | null; // The worst damage of the file.
  is_growing: boolean; // True of a queued file that is still being written.
}

/** Progress of reading one file. */
export interface Progress {
  phase: 'advising' | 'analysing' | 'reading' | 'waiting'; // `waiting`.
  bytes_done: number; // Bytes of the file on disk.
  bytes_total: number;
  events: number;
  elapsed_ns: number;
  left_ns: number | null; // Estimated time until it is ready.
}

/** A file or folder that could not be read, and the remedy. */
export interface Problem { path: string; message: string; remedy: string; }

/** The results of a run in short. Step time, steps and batch are those of its slowest trace. */
export interface RunResult {
  trace_count: number; // Number of the traces that are read.
  verdict: string; // The sentence of the advice on the run.
  slowest: string; // Name of the worker with the longest mean step.
  step_ns: number | null; // Its mean step.
  step_count: number;
  step_durations_ns: number[]; // Durations of its steps in order.
  busy_share: number | null;
  batch_size: number | null; // Samples per step.
  finding: FirstFinding | null; // Null if nothing was found.
  finding_count: number; // Rules with findings, related symptoms and notes included.
  saving: RunSaving | null; // Of all findings together.
  withheld: string; // Reason for withholding that saving, as a sentence.
}

/** The first finding of a run's advice. */
export interface FirstFinding {
  rule: string;
  title: string;
  severity: 'critical' | 'info' | 'warning';
  saving: RunSaving | null; // None if it claims no time.
}

/** A potential saving per step; without steps, of the recorded window. */
export interface RunSaving {
  low_ns: number;
  high_ns: number;
  share: number; // `high_ns` as a fraction of the step.
}

/** A run: its workers' traces and the results of every rule for each, and for all of them. */
export interface RunReport {
  name: string;
  workers: WorkerReport[];
  outcomes: Outcome[];
  merged: MergedOutcome[]; // Findings of all traces, merged, the most serious first.
  verdict: string; // One sentence for the run.
  job: JobReport | null; // None for a run without traces.
  representatives: RepresentativeTrace[]; // Traces that represent several ranks.
}

/** One worker's trace: one file. */
export interface WorkerReport {
  trace: string; // Opaque id of the trace in the API.
  name: string;
  span: string;
  rank: number | null;
  events: number;
  dialect: string;
  synthetic: boolean; // Whether stepscope's synthesiser wrote the trace.
  verdict: string; // One sentence.
  step: StepReport;
  devices: DeviceReport[];
  idle_ns: Record<string, number>; // Idle nanoseconds of the busiest device by cause, per step.
  health: HealthItem[];
  inflated_bytes: number; // Size of the JSON document, as far as it was read.
  reader: string; // Name of the stepscope reader that read the file.
  producer: string; // The program that wrote the file, by its contents.
  fingerprint: string; // Equal for two traces only if their events are equal.
  record_next: RecordNext[]; // Data that was not recorded.
  profile_call: string;
  budget: BudgetLine[]; // Parts of the step's time, with the potential saving in each.
  saving: PotentialSaving | null; // Potential saving of all findings together.
  standing: OverallStatus | null; // None if no rules ran.
  file: string; // The name of its file, without the folder.
  settings: RunSetting[]; // Settings of the run that the trace handler recorded.
  host: string; // The machine's name.
  groups: string[]; // Parts of the job that it belongs to.
  world_size: number | null; // Ranks of the job.
  is_training: boolean | null; // Whether a backward pass or an optimizer step was recorded.
  wait_ns: number | null; // Exposed time per step waiting for other ranks in collectives.
  outlook: Outlook | null; // None if no finding saves time, or the trace is not simulated.
  outlook_withheld: string; // Reason for withholding the outlook although findings save time.
}

/** The mean step. Without steps, `count` is 0 and the numbers are for the whole window. */
export interface StepReport {
  count: number;
  mean_ns: number;
  standard_deviation_ns: number;
  breakdown_ns: Record<string, number>; // Category to nanoseconds of the mean step.
  unrecorded: UnrecordedStepReport | null; // Steps without the profiler.
}

/** Steps before the window that ran without the profiler, as the recorder measured them. */
export interface UnrecordedStepReport {
  count: number;
  median_ns: number;
  first_quartile_ns: number | null;
  third_quartile_ns: number | null;
  mean_ns: number | null; // With the rare slow steps.
}

/** Use of one device in the window. */
export interface DeviceReport {
  id: number;
  name: string;
  busy_share: number; // Union of kernels, copies and memory sets over the window.
  kernel_busy_share: number;
  sm_efficiency_share: number | null; // Duration-weighted min(1, blocks per SM) over the window.
  occupancy_share: number | null;
  tensor_core_share: number | null; // Fraction of kernel time in kernels that use matrix units.
  memory_peak_bytes: number | null; // Peak of the memory that torch took from the device.
  memory_capacity_bytes: number | null;
  notes: Record<string, string>; // For each number that is None.
}

/** A property of the file itself that affects its numbers. */
export interface HealthItem {
  kind: string;
  severity: 'critical' | 'info' | 'warning';
  count: number;
  message: string;
  remedy: string;
  nature: 'damage' | 'gap' | 'note'; // `damage`.
  of_count: number | null; // Total of the items that `count` counts, damaged or not.
  action: string; // How stepscope handles it, as a clause after `message`.
  lost_bytes: number; // Bytes of the document that contribute no result.
  examples: HealthExample[];
  effect: 'low' | 'none' | 'withheld'; // Effect on everything in `affects`.
  affects: string[]; // Ids of rules, and names of other parts of the page, that depend on the damaged data.
}

/** One location in the file that demonstrates a health item. */
export interface HealthExample {
  offset_bytes: number; // From the start of the JSON document, inflated if the file is compressed.
  text: string; // The text there, or the irregular event.
  start_ns: number | null; // Start of the event, from the trace's first event.
}

/** Something that was not recorded, and the line of code that records it next time. */
export interface RecordNext {
  flag: string;
  why: string; // Benefit of recording it, as a sentence.
  code: string; // One line of `WorkerReport.profile_call`.
}

/** One part of the mean step (without steps: of the window); the parts sum to the whole. */
export interface BudgetLine {
  category: string;
  label: string;
  time_ns: number;
  share: number;
  recoverable_low_ns: number;
  recoverable_high_ns: number; // Potential saving of all findings in this part, each nanosecond counted once.
  rules: string[]; // The rules of these findings, ordered by saving.
  meaning: string; // Definition of the category.
}

/** Potential saving of all findings of a trace together: all of their fixes are simulated. */
export interface PotentialSaving {
  low_ns: number;
  high_ns: number;
  low_share: number; // The least as a fraction of the step.
  high_share: number; // The most as a fraction of the step.
}

/** Overall result of all rules for a trace, with the numbers behind it. */
export interface OverallStatus {
  state: 'cannot-tell' | 'found' | 'healthy' | 'not-applicable';
  message: string;
}

/** One setting of the run, as the trace handler recorded it. */
export interface RunSetting {
  group: string; // Subject of the setting for display.
  subject: string; // The subject as recorded.
  name: string;
  label: string;
  value: number | string; // `on` or `off` for a switch.
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
}

/** The step with the first fixes of the advice, simulated together, and its limit then. */
export interface Outlook {
  rules: string[]; // Rules whose findings are fixed, at most three, in the order of the advice.
  world: 'recorded' | 'unrecorded'; // `unrecorded`.
  now_ns: number; // The step without the fixes.
  low_ns: number; // The step where the fixes save most.
  high_ns: number; // The step where they save least.
  limit: 'collectives' | 'data loading' | 'device' | 'host' | 'launches and waits';
  limit_share: number; // Its fraction of that path.
  next_rule: string; // The next rule in the order of the advice whose fix still saves 1 % or more.
  next_saving_ns: number; // The most that it saves in addition.
  next_saving_low_ns: number; // The least that it saves in addition.
  message: string; // The outlook as sentences, which name findings by their titles.
}

/** Result of one rule for one worker's trace. */
export interface Outcome {
  rule: string;
  title: string;
  category: string;
  status: 'cannot-tell' | 'failed' | 'found' | 'not-applicable' | 'passed' | 'rejected' | 'suppressed';
  worker: string;
  span: string;
  trace: string; // Opaque id of the trace.
  severity: 'critical' | 'info' | 'warning' | null;
  confidence: 'high' | 'low' | 'medium' | null;
  claim: ClaimReport | null;
  message: string; // The measurement, in one or two sentences with this trace's numbers.
  why: string; // Reason that the state costs time.
  evidence: Evidence[];
  events: EventReference[];
  fix: Fix | null;
  reason: string | null; // Reason that the rule does not apply, failed, or was suppressed.
  remedy: string | null; // The line of code that records the data that the rule lacks.
  links: string[];
  doubts: string[]; // Damage to the trace that makes this result unreliable.
  tables: EvidenceTable[];
  locations: SourceLine[]; // Lines of the user's program that the finding is about, the costliest first.
  effort: 'day' | 'flag' | 'hour' | null;
  risk: 'behaviour' | 'memory' | 'none' | 'numerics' | null;
  life_cycle: 'deprecated' | 'preview' | 'stable';
  is_symptom: boolean; // Whether it names no cause, and is therefore sure of no saving.
  reports_missing_data: boolean;
  fingerprint: string; // Equal in every trace of the same code.
  package: string; // The package that provides the rule.
  culprit: string; // The cause of the lost time as named in a verdict.
  suppressed_by: '' | 'baseline' | 'configuration' | 'recording'; // Origin of the suppression.
  baseline: '' | 'new' | 'unchanged' | 'worse'; // Change relative to the given baseline.
  blamed: string[]; // For a rule over the run.
}

/** Potential saving of a finding, per step if there are steps, otherwise over the window. */
export interface ClaimReport {
  low_ns: number;
  high_ns: number;
  share: number; // `high_ns` as a fraction of the step (or window).
  net_low_ns: number;
  net_high_ns: number;
  net_share: number; // `net_high_ns` as a fraction of the step (or window).
  method: string; // One sentence on how the saving was estimated.
  steps: string; // Numbers of the steps that contain some of it, as ranges.
  counted_under: string[]; // Rules whose findings count the rest of `high_ns`.
  unrecorded_low_ns: number | null;
  unrecorded_high_ns: number | null;
  unrecorded_share: number | null;
  unrecorded_net_low_ns: number | null;
  unrecorded_net_high_ns: number | null;
  unrecorded_net_share: number | null; // The net figures in that step.
  is_measured: boolean; // Whether the recorder measured unrecorded steps.
  steps_differ: boolean;
  decisive_step: 'recorded' | 'unrecorded';
  holds_in: 'both' | 'neither' | 'recorded' | 'unrecorded';
  example_times: ClaimedTime[]; // Claimed times at the finding's first event.
  step_ranges: ([number, number])[]; // First and last number of each range of `steps`.
}

/** A stretch of claimed time, from the trace's first event. */
export interface ClaimedTime {
  start_ns: number;
  end_ns: number;
  claimed_ns: number; // The claimed part of it.
}

/** One measured fact behind a finding: a label, a value with its unit, and a link to it. */
export interface Evidence {
  label: string;
  value: number | string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  link: Link | null;
}

/** A view of the page, with the selection that shows a piece of evidence. */
export interface Link {
  view: 'advice' | 'compare' | 'distributed' | 'flame' | 'health' | 'kernels' | 'memory' | 'modules' | 'operators' | 'overview' | 'runs' | 'timeline' | 'trends';
  search?: string | null; // Text for the view's search box.
  group?: string | null; // Grouping of the view's table.
  step?: number | null; // The number in `ProfilerStep#N`.
  start_ns?: number | null;
  end_ns?: number | null;
  trace?: string | null; // Opaque id of the trace, if it differs from the outcome's.
  source?: string | null; // A line of the user's program.
  rank?: number | null;
}

/** One event of the trace that shows the problem. */
export interface EventReference {
  name: string;
  track: string; // Thread or stream of the event.
  start_ns: number; // From the trace's first event.
  duration_ns: number;
  detail: string; // Details of the event.
  event: number | null; // Index of the event in the file, its key in every table.
}

/** The change that a finding suggests, how to verify it, and its caveats. */
export interface Fix { summary: string; code: string; language: string; verify: string; caveats: string[]; }

/** Parts of a finding: its kernels, operators, source lines or ranks, the costliest first. */
export interface EvidenceTable { label: string; columns: EvidenceColumn[]; rows: EvidenceRow[]; }

/** A column of a table of evidence, with the unit of its cells. */
export interface EvidenceColumn {
  label: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
}

/** A row of a table of evidence; a cell is None if its value is unknown. */
export interface EvidenceRow { cells: (number | string | null)[]; link: Link | null; }

/** A line of the user's program that a finding is about. */
export interface SourceLine { path: string; line: number; function: string; }

/** A finding of one rule in several traces of a run, merged. */
export interface MergedOutcome {
  outcome: Outcome; // The outcome of the trace in which it costs most, or is most serious.
  traces: string[]; // Ids of the traces that have it.
  of_count: number; // Number of traces for which the rule had a result.
  where: string; // The traces that have it, for display.
  low_ns: number | null;
  median_ns: number | null;
  high_ns: number | null; // Minimum, median and maximum potential saving per step in one trace.
  ranks: string; // The ranks that have it, as ranges.
  hosts: string[];
  group: string; // The part of the job of which all recorded ranks have it, if no other rank has it.
  steps: string; // Numbers of the steps that contain some of it in any trace, as ranges.
  when: string; // The steps for display.
  related: RelatedFinding[]; // Findings of the blamed traces that differ from their peers.
  related_more: number; // Number of further such findings.
  job_saving: JobSaving | null; // Potential saving of the job by this fix alone.
}

/** A finding in the blamed traces that their peers do not have. */
export interface RelatedFinding {
  rule: string;
  title: string;
  trace: string; // Id of the trace in which it costs most beyond its peers.
  rank: number | null;
  name: string; // Name of the worker.
  is_only_there: boolean; // Whether the rule found nothing in any of its peers.
  high_ns: number | null; // Maximum saving there per step.
  peers_high_ns: number | null; // The same in the median peer, 0 if it has no such finding.
  low_ns: number | null; // Minimum saving there per step.
  where: string; // The blamed traces that have it, for display.
  trace_count: number; // Number of these traces.
}

/** Potential saving of the whole job, as estimated in `advice/job_savings.py`. */
export interface JobSaving {
  low_share: number;
  high_share: number; // Fraction of the job's step, and therefore of each device's time.
  low_gpu_hours: number | null;
  high_gpu_hours: number | null; // Per day.
  low_money: number | null;
  high_money: number | null; // Per day, at the given price, in its currency.
}

/** The job of a run: its devices, and the potential saving of all findings per day. */
export interface JobReport {
  step_ns: number; // Mean step of the job.
  gpu_count: number | null; // None.
  gpu_source: string; // Source of that number, as a phrase that follows it.
  gpu_hour_price: number | null;
  is_asked: boolean; // Whether the user specified a number of devices or a price.
  total: JobSaving | null; // Of all findings together, which is not the sum of their savings.
  withheld: string; // Reason for not reporting a saving of the job, as a sentence.
  method: string; // How it was estimated, with its assumptions.
  outlook: JobOutlook | null;
}

/** The step of a job of several ranks with the first fixes of its advice. */
export interface JobOutlook {
  rules: string[]; // Rules whose findings are fixed, at most three, in the order of the advice.
  low_ns: number; // The step, estimated from the savings of the ranks as the job's saving is, at least.
  high_ns: number; // The same at most.
  message: string; // The outlook as a sentence, which names findings by their titles.
}

/** A trace that represents part of a run. */
export interface RepresentativeTrace {
  kind: 'fastest' | 'median' | 'odd' | 'slowest'; // By compute time, excluding waiting for other ranks.
  trace: string; // Id of the trace.
  rank: number | null;
  name: string; // Name of the worker.
  reason: string; // Reason for its selection, as sentences.
}

/** An error response. */
export interface ApiError { code: string; message: string; hint: string; }

/** Differences between two sides. */
export interface ComparisonResult {
  schema: number; // Version of the API's JSON.
  before: ComparedSide;
  after: ComparedSide;
  is_same: boolean; // True where both sides are the same steps of the same traces.
  comparison: Comparison;
  modules: ModuleRow[]; // Empty where a side has no recorded modules.
  test: string; // The test for statistical significance.
  significance: string; // Significance of the step's change, as text.
  interval: string; // Confidence interval of the step's difference, as text.
  status_labels: Record<string, string>; // Labels of the statuses of rows.
}

/** Traces of one side of a comparison. */
export interface ComparedSide {
  waiting_count: number; // Traces that are not read yet.
  problems: Problem[]; // Problems of the traces that cannot be read.
  step_ns: number[]; // Step times in order.
  step_numbers: string; // All steps of its traces as ranges.
  devices: string; // Names of its devices, or their kind where names are not recorded.
}

/** Two sides and their differences. */
export interface Comparison {
  before: Side;
  after: Side;
  comparability: Comparability;
  step: Change;
  step_interval_ns: [number, number] | null; // 95 % confidence interval of the step's difference (Welch).
  waterfall: Part[]; // Changes of the parts of the mean step, which sum to its change.
  idle: Part[]; // The busiest device's idle time per step by cause.
  figures: Part[]; // Busy share, peak memory and the like.
  operators: Row[]; // Largest changes first.
  device_work: Row[]; // Kernels, copies and memory sets, likewise.
  advice: AdviceChange[];
  savings: Saving[]; // Of all traces together, then of each trace that both sides have.
  warnings: string[]; // Caveats.
  settings: SettingChange[]; // Recorded settings that differ.
}

/** One side of a comparison. */
export interface Side {
  name: string;
  recording_count: number;
  worker_count: number;
  step_count: number; // Steps that were sampled.
  mean_step_ns: number;
  median_step_ns: number;
  standard_deviation_ns: number;
  batch_size: number | null;
  batch_ns: number | null; // Mean step per sample.
}

/** Whether the steps of two sides are comparable. */
export interface Comparability {
  level: 'comparable' | 'not-comparable' | 'with-care';
  reasons: string[]; // Differences between the sides with which their steps are not comparable, as sentences.
  cautions: string[]; // Differences with which they are comparable with care.
  likeness: number | null; // Of the models, by their operators, from 0 to 1.
}

/** A figure before and after. */
export interface Change {
  before: number;
  after: number;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  standard_error: number | null; // Of the difference.
  p: number | null; // Probability of such a change of any figure of the table if nothing had changed.
  verdict: 'less' | 'more' | 'same' | 'untested';
}

/** A part of the mean step, or of a device's idle time in it. */
export interface Part { id: string; label: string; meaning: string; change: Change; }

/** Cost per step of one operator, annotation, kernel, copy or memory set on each side. */
export interface Row {
  kind: 'annotation' | 'copy' | 'kernel' | 'memory-set' | 'operator' | 'rest';
  name: string;
  status: 'added' | 'faster' | 'gone' | 'other-calls' | 'same' | 'slower' | 'untested';
  matched_by: '' | 'name' | 'name and module' | 'name and operator' | 'name without its hash' | 'name, shape and module';
  module: string; // The innermost `nn.Module` around it, with `with_stack=True` or `with_modules=True`.
  operator: string; // Of work on a device.
  shapes_before: string[];
  shapes_after: string[];
  calls: Change;
  device: Change; // Device time.
  host: Change; // Host self time.
  device_total: Change; // Device time including nested operators and annotations.
  host_total: Change; // Host time including nested calls, likewise.
  summed_count: number; // Number of shapes, modules and names that it sums.
}

/** Change of a finding; savings are per step, means over a side's traces. */
export interface AdviceChange {
  rule: string;
  title: string;
  subject: string; // Subject, where a rule has several findings.
  status: 'better' | 'fixed' | 'new' | 'not-checked' | 'still' | 'worse';
  severity_before: 'critical' | 'info' | 'warning' | null;
  severity_after: 'critical' | 'info' | 'warning' | null;
  low_before_ns: number;
  high_before_ns: number;
  low_after_ns: number;
  high_after_ns: number;
  reason: string; // Reason that it was not checked.
}

/** Estimated saving of followed advice per step, and the achieved change of the step. */
export interface Saving {
  worker: string; // Empty where it is of all traces together.
  span: string;
  rules: string[]; // The rules whose findings are fixed or became better.
  predicted_low_ns: number; // Estimated before.
  predicted_high_ns: number;
  realised_mean_ns: number; // Mean step before minus after.
  realised_median_ns: number;
}

/** A setting of the run, as the trace handler recorded it, that differs between the sides. */
export interface SettingChange {
  name: string; // As it was recorded.
  label: string; // As it is shown.
  before: string;
  after: string;
}

/** Cost per step of the operators and annotations of one `nn.Module` on each side. */
export interface ModuleRow {
  name: string; // As the profiler numbers it.
  status: 'added' | 'faster' | 'gone' | 'other-calls' | 'same' | 'slower' | 'untested';
  calls: Change; // Calls of operators and annotations in it.
  device: Change; // Device time of the work that they launched directly.
  host: Change; // Their host self time.
  is_rest: boolean; // Whether it sums the modules below a thousandth of the step.
  summed_count: number; // Number of modules that it sums.
}

/** The other runs with a trace that is read, the most alike first. */
export interface Candidates {
  schema: number; // Version of the API's JSON.
  candidates: Candidate[];
}

/** A run to compare another run with. */
export interface Candidate {
  run: string; // Id of the run.
  level: 'comparable' | 'not-comparable' | 'with-care';
  likeness: number | null; // Likeness of the models, from 0 to 1.
  is_same_model: boolean;
  reason: string; // Likeness and differences as text.
}

/** Ranks of a run: completeness, clocks, stragglers, outliers and groups. */
export interface Distributed {
  schema: number; // Version of the API's JSON.
  span: string;
  world_size: number | null; // Ranks of the job.
  ranks: RankInfo[]; // By rank.
  missing_count: number;
  missing_ranks: string; // Ranks of the job without a trace.
  waiting_count: number; // Files that are not read yet.
  problems: Problem[];
  host_count: number; // Machines that the traces record.
  has_device: boolean;
  group_count: number;
  steps: number[]; // Numbers of the complete steps of any rank.
  mean_step_ns: number; // Mean over steps and ranks.
  collective_count: number; // Collectives of the run, each counted once.
  matched_count: number; // Collectives that are recorded on more than one rank.
  clocks: RunClocks;
  stragglers: Straggler[]; // Stragglers first (at most 100), then the 20 latest other ranks.
  straggler_count: number;
  representatives: Representative[]; // Ranks to examine first.
  outliers: OutlierRank[]; // Largest z-score first.
  outlier_count: number;
  groups: GroupInfo[]; // Longest total time first.
  unreadable_ranks: string; // Missing ranks with a file that cannot be read.
  has_all_to_all: boolean; // Whether any rank recorded an all-to-all exchange.
}

/** One rank of the run; null where the trace does not record a value. */
export interface RankInfo {
  rank: number | null;
  rank_source: string | null; // `header` (distributedInfo.rank), `file name`, `content` or `device`.
  rank_confidence: string | null;
  worker: string;
  host: string | null;
  device_name: string | null;
  step_count: number; // Complete steps.
}

/** Alignment of the ranks' clocks. */
export interface RunClocks {
  reference: string; // The worker whose clock the others are aligned to.
  machine_count: number; // Ranks on its machine, and so with its clock.
  collective_count: number; // Ranks aligned by collectives that no rank leaves before all have entered.
  lost_count: number; // Ranks that are not aligned with it.
  error_ns: number | null; // Upper bound of the clocks' errors.
  likely_error_ns: number | null; // Typical spread of the ranks' ends of a collective.
  drift_count: number; // Ranks whose clock also runs faster or slower.
}

/** A rank and its lateness in collectives. */
export interface Straggler {
  rank: number | null;
  worker: string;
  is_straggler: boolean; // Whether its lateness is an outlier among the ranks, and 1 % of a step or more.
  score: number | null;
  own_excess_ns: number | null; // Compute time per step beyond the median rank of its pipeline stage.
  found_by: '' | 'lateness' | 'own work'; // The measure that shows a straggler.
  lateness_ns: number | null; // Mean arrival after the median rank, in the group in which it is least late.
  collective_count: number;
  last_count: number; // Number of those in which it arrived last.
  wait_caused_ns: number; // Total waiting of the other ranks for it, per step.
  wait_ns: number; // Its waiting for other ranks, per step.
  since_step: number | null;
  late_steps: number[]; // Steps in which it was later than half its mean lateness.
  cause: string | null; // The work that takes longer than on the median rank.
  cause_ns: number | null;
}

/** A rank that represents others, or differs from them. */
export interface Representative {
  rank: number | null;
  worker: string;
  host: string | null;
  kind: 'fastest' | 'median' | 'odd' | 'slowest'; // By compute time.
  figure: string; // The metric.
  value: number;
  usual: number; // Median of the compared ranks.
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  score: number; // Modified z-score among the compared ranks.
  step_ns: number; // Mean step time.
  reason: string;
}

/** An outlying metric of a rank or of a machine. */
export interface OutlierRank {
  rank: number | null; // Null for a machine.
  worker: string; // Empty for a machine.
  host: string | null;
  is_host: boolean;
  figure: string;
  label: string;
  value: number;
  usual: number;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  score: number;
  is_sure: boolean; // Whether it is compared with at least eight, over as many steps as most have.
  reason: string;
}

/** A process group of the job. */
export interface GroupInfo {
  name: string; // Torch's name of the group.
  description: string;
  role: string; // `DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`.
  role_confidence: string;
  why: string; // Evidence of the role.
  size: number | null;
  ranks: string; // `0-7`.
}

/** One metric of every rank and step: value times `scale`; null where not recorded. */
export interface RankSteps {
  schema: number; // Version of the API's JSON.
  metric: string;
  label: string;
  help: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  is_high_bad: boolean;
  scale: number;
  workers: string[]; // Workers of the rows.
  ranks: (number | null)[];
  hosts: (string | null)[];
  steps: number[]; // Steps of the columns.
  values: ((number | null)[])[];
  left_out_count: number; // Number of steps left out.
  waiting_count: number;
  empty: string; // Why no value is known.
}

/** Step time of every rank by category: of the mean step, or of one step. */
export interface RankBreakdown {
  schema: number; // Version of the API's JSON.
  step: number | null;
  categories: Category[];
  rows: RankRow[];
  without_step: string[]; // Workers without the requested step.
  waiting_count: number;
}

/** One category of step time. */
export interface Category { id: string; label: string; help: string; }

/** Step time of one rank by category. */
export interface RankRow {
  rank: number | null;
  worker: string;
  host: string | null;
  step_count: number;
  duration_ns: number;
  parts_ns: number[]; // In the order of `categories`.
  communication_ns: number; // Exposed or overlapped.
  transfer_ns: number | null; // Transfer in it.
  wait_ns: number | null; // Waiting for other ranks in it.
  exposed_ns: number;
  overlap_share: number | null;
  idle_ns: number | null; // Idle time of its busiest device.
  late_ns: number | null; // Mean lateness per collective, in the group in which it is least late.
}

/** A table of collectives, with the collective that each row opens. */
export interface Collectives {
  schema: number; // Version of the API's JSON.
  table: Table;
  opens: CollectiveRef[]; // The row's collective.
  step: number | null;
  worker: string;
  waiting_count: number;
}

/** A table by columns; `values[key]` has `row_count` entries, null where not recorded. */
export interface Table {
  schema: number; // Version of the API's JSON.
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the initial sort column, largest first.
  groups: string[]; // The available groupings of this table.
  group: string;
  total_ns: number; // Duration of the window.
  empty: string; // Why the table has no rows, and the code that records them.
  all_row_count: number | null; // Number of all rows, where only the first by `sort` are sent.
  match_count: number | null; // Number of rows that match the request's search.
  sums: string[]; // Keys of columns whose sum over rows is a total.
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
}

/** One column of a table. */
export interface Column {
  key: string;
  label: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  help: string;
  hidden: boolean; // True for a column that is hidden at first.
  group: string; // Whose time or memory it is, with which the label begins.
}

/** A collective, identified by one of its members: stable while more files are read. */
export interface CollectiveRef { worker: string; event: number; }

/** One collective on all its ranks, on one clock. */
export interface CollectiveRanks {
  schema: number; // Version of the API's JSON.
  kind: string;
  group: string;
  description: string;
  role: string;
  sequence: number | null;
  step: number | null;
  dtype: string;
  message_bytes: number | null;
  matched_by: string; // `sequence`, `order`, or empty where it is recorded on one rank only.
  expected_count: number | null;
  missing_ranks: string;
  transfer_ns: number | null;
  wait_ns: number; // Sum over the ranks.
  length_ns: number; // Time from the first rank's start to the last rank's end.
  algorithm_bytes_per_second: number | null;
  bus_bytes_per_second: number | null;
  aligned_by: 'clocks' | 'ends';
  error_ns: number | null;
  members: CollectiveMember[];
  before: CollectiveRef | null; // The previous collective of the same kind, group, type and size.
  after: CollectiveRef | null;
  place: number; // Position among those, from 1.
  alike_count: number;
}

/** One rank of a collective. */
export interface CollectiveMember {
  rank: number | null;
  worker: string;
  host: string | null;
  event: number;
  start_ns: number; // Start after the first rank's start.
  duration_ns: number;
  wait_ns: number; // Waiting for other ranks in it.
  exposed_ns: number;
  is_last: boolean;
}

/** Bytes that ranks send to each other in all-to-all exchanges, by process group. */
export interface AllToAll {
  schema: number; // Version of the API's JSON.
  groups: ExchangeGroup[]; // Most bytes first.
  waiting_count: number; // Files that are not read yet.
}

/** All-to-all exchanges in one process group. */
export interface ExchangeGroup {
  group: string; // Torch's name.
  description: string;
  ranks: number[]; // Ranks of the rows and columns.
  call_count: number; // Exchanges of a rank.
  sent_bytes: ((number | null)[])[]; // A row per sender, a column per receiver.
  received_bytes: number[]; // Bytes that each rank receives.
  imbalance: number | null; // Most bytes received by a rank over the mean.
  reason: string; // Why the imbalance is unknown.
}

/** Other installed tools that open traces. */
export interface Tools {
  schema: number; // Version of the API's JSON.
  perfetto: string; // Relative URL of Perfetto's page.
  perfetto_hint: string; // The command that installs it.
}

/** A flame graph by columns: nodes by depth, siblings adjacent, heaviest first. */
export interface FlameGraph {
  schema: number; // Version of the API's JSON.
  unit: 'bytes' | 'ns'; // `ns` or `bytes`.
  kinds: FlameKind[];
  names: string[];
  name_kinds: number[]; // The kind of each of `names`, as an index of `kinds`.
  own: number[]; // Value without children, in `unit`.
  total: number[]; // Value with descendants (recursive calls count once), in `unit`.
  calls: number[]; // Number of calls, counted as in the view Operators.
  whole: number; // The sum of all `own` values, in `unit`.
  steps: number; // Number of steps covered.
  waiting: number; // Own time of frames in which the host waits, in `unit`, shown or not.
  before_waiting: number; // `waiting` of the baseline.
  before_own: number[]; // `own` of the baseline.
  before_total: number[]; // `total` of the baseline.
  before_calls: number[]; // `calls` of the baseline.
  before_whole: number; // `whole` of the baseline.
  before_steps: number; // `steps` of the baseline.
  is_per_step: boolean; // Whether the page divides the values by the number of steps.
  parent: number[]; // The parent of each node.
  name: number[]; // The name of each node, as an index of `names`.
  merged_count: number[]; // Number of frames in a node of the kind `smaller`.
  root: number; // The node that fills the picture.
  node_count: number; // Number of nodes before pruning.
  threads: FlameThread[]; // Of calls of one trace.
  devices: string[]; // Of memory.
  device: string; // Of memory.
  at_ns: number | null; // Of memory.
  note: string; // A limitation of the graph.
  remedy: string; // The code that records more.
  empty: string; // Why the graph is empty.
}

/** A kind of frames. */
export interface FlameKind { id: string; label: string; }

/** A thread with calls. */
export interface FlameThread {
  name: string; // As `pid/tid`, for the parameter `thread`.
  label: string;
  total_ns: number; // Time of its calls, or of the device work that they launched.
}

/** The functions of a flame graph, largest `own` value first. */
export interface FlameFunctions {
  schema: number; // Version of the API's JSON.
  unit: 'bytes' | 'ns'; // `ns` or `bytes`.
  kinds: FlameKind[];
  names: string[];
  name_kinds: number[]; // The kind of each of `names`, as an index of `kinds`.
  own: number[]; // Value without children, in `unit`.
  total: number[]; // Value with descendants (recursive calls count once), in `unit`.
  calls: number[]; // Number of calls, counted as in the view Operators.
  whole: number; // The sum of all `own` values, in `unit`.
  steps: number; // Number of steps covered.
  waiting: number; // Own time of frames in which the host waits, in `unit`, shown or not.
  before_waiting: number; // `waiting` of the baseline.
  before_own: number[]; // `own` of the baseline.
  before_total: number[]; // `total` of the baseline.
  before_calls: number[]; // `calls` of the baseline.
  before_whole: number; // `whole` of the baseline.
  before_steps: number; // `steps` of the baseline.
  is_per_step: boolean; // Whether the page divides the values by the number of steps.
  all_count: number; // Number of functions before the limit.
}

/** Details of the runs of a kernel. */
export interface KernelDetails {
  schema: number; // Version of the API's JSON.
  name: string;
  full_name: string;
  durations: TimeDistribution;
  delays: TimeDistribution | null; // From the launching call's end to the kernel's start, at least 0.
  steps: StepUse[];
  launches: KernelLaunch[];
  launch_count: number;
  streams: StreamUse[];
  operators: RelatedOperator[];
  stacks: StackUse[]; // By the Python functions around the launching operators.
  stack_count: number;
  stacks_missing: string;
  instances: CallInstance[]; // The longest runs.
}

/** Distribution of durations. */
export interface TimeDistribution {
  count: number;
  total_ns: number;
  min_ns: number;
  mean_ns: number;
  p50_ns: number;
  p95_ns: number;
  max_ns: number;
  edges_ns: number[]; // Edges of the bins.
  counts: number[];
  is_logarithmic: boolean; // Whether the bins grow by a constant factor.
}

/** Calls and time in one step. */
export interface StepUse {
  number: number;
  call_count: number;
  time_ns: number; // Host total of an operator, duration of a kernel.
  device_ns: number; // Device time launched by an operator's calls, nested calls included.
}

/** Runs with the same launch configuration. */
export interface KernelLaunch {
  grid: string; // Blocks in x, y, z (JSON).
  block: string;
  registers_per_thread: number | null;
  shared_memory_bytes: number | null;
  call_count: number;
  total_ns: number;
  mean_ns: number;
}

/** Runs on one stream. */
export interface StreamUse {
  device: number;
  stream: number; // -1.
  call_count: number;
  total_ns: number;
}

/** An operator that calls this one, that this one calls, or that launches this kernel. */
export interface RelatedOperator {
  name: string; // Empty.
  kind: string;
  call_count: number;
  time_ns: number; // Host total of an operator's calls, duration of a kernel.
  share: number; // Fraction of the time of all rows.
}

/** Calls from the same Python functions, innermost first. */
export interface StackUse {
  frames: StackFrame[];
  call_count: number;
  time_ns: number; // Host total of an operator, duration of a kernel.
  device_ns: number;
}

/** One Python function of a call stack. */
export interface StackFrame {
  text: string; // The profiler's text.
  line: SourceLine | null; // Source line.
}

/** One call, or one run of a kernel. */
export interface CallInstance {
  event: number;
  start_ns: number;
  duration_ns: number;
  device_ns: number;
  track: string; // The thread, or the device and stream.
  step: number | null; // The number in `ProfilerStep#N`.
}

/** Durations of all kernels of a trace, and of those shorter than a launch. */
export interface KernelDurations {
  schema: number; // Version of the API's JSON.
  kernel_count: number;
  total_ns: number;
  classes: DurationClass[]; // Shortest first, empty ones included.
  launch_ns: number | null; // Median duration of the calls that launch one kernel each.
  shorter_count: number; // Kernels that take less than `launch_ns`.
  shorter_ns: number; // Their total duration.
}

/** Kernels of similar durations. */
export interface DurationClass {
  from_ns: number;
  below_ns: number | null; // Exclusive.
  kernel_count: number;
  total_ns: number;
}

/** A device's memory over time. */
export interface MemoryOverTime {
  schema: number; // Version of the API's JSON.
  devices: MemoryDeviceFacts[];
  device: string; // Id of the device.
  start_ns: number;
  end_ns: number; // End of the requested range, or of the recorded memory and steps.
  levels: MemoryLevels;
  peak: MemoryPoint | null; // The highest allocated level in the time range.
  reserved_peak: MemoryPoint | null;
  ooms: MemoryOom[];
  oom_count: number;
  steps: MemoryStep[];
  notes: string[]; // Limitations of the curve.
}

/** One device whose memory was recorded. */
export interface MemoryDeviceFacts {
  id: string; // `CPU`, `CUDA 0`, `HIP 1`.
  peak_bytes: number; // Peak of allocated memory.
  peak_ns: number; // Time of the first peak.
  most_reserved_bytes: number | null; // Peak of the caching allocator's reserved memory.
  capacity_bytes: number | null; // Total memory of the device.
  event_count: number; // Number of allocations and frees.
  has_totals: boolean; // False before torch 1.10, which recorded no totals.
}

/** Memory after events of the trace; a level holds until the next. */
export interface MemoryLevels {
  time_ns: number[];
  allocated_bytes: (number | null)[];
  reserved_bytes: (number | null)[]; // Empty where the allocator has no cache.
  event_count: number; // Number of all events in the time range.
}

/** A point of the curve. */
export interface MemoryPoint { time_ns: number; bytes: number; }

/** An out-of-memory error of the device. */
export interface MemoryOom {
  event: number;
  time_ns: number;
  asked_bytes: number | null;
  unused_bytes: number | null; // Reserved memory that was not allocated.
  cause: string; // `fragmented`.
  operator: string | null;
}

/** A step of the host. */
export interface MemoryStep { number: number; start_ns: number; end_ns: number; }

/** Owners of allocated memory, largest first, by `name` and `origin`. */
export interface MemoryHolders {
  schema: number; // Version of the API's JSON.
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the initial sort column, largest first.
  groups: string[]; // The available groupings of this table.
  group: string;
  total_ns: number; // Duration of the window.
  empty: string; // Why the table has no rows, and the code that records them.
  all_row_count: number | null; // Number of all rows, where only the first by `sort` are sent.
  match_count: number | null; // Number of rows that match the request's search.
  sums: string[]; // Keys of columns whose sum over rows is a total.
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
  device: string;
  moment_ns: number;
  held_bytes: number | null; // All allocated memory.
  reserved_bytes: number | null;
  recorded_bytes: number; // Memory allocated while recording.
  earlier_bytes: number; // Memory allocated before the recording and freed in it.
  unrecorded_bytes: number | null; // The rest.
  is_peak: boolean; // Whether it is the device's peak of the whole trace.
  left_out_count: number; // Number of owners left out.
  left_out_bytes: number;
}

/** Allocations, the first by `sort`; the lists are parallel to the rows. */
export interface MemoryAllocations {
  schema: number; // Version of the API's JSON.
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the initial sort column, largest first.
  groups: string[]; // The available groupings of this table.
  group: string;
  total_ns: number; // Duration of the window.
  empty: string; // Why the table has no rows, and the code that records them.
  all_row_count: number | null; // Number of all rows, where only the first by `sort` are sent.
  match_count: number | null; // Number of rows that match the request's search.
  sums: string[]; // Keys of columns whose sum over rows is a total.
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
  device: string;
  found_count: number; // Number of all matches.
  found_bytes: number;
  left_out_bytes: number; // Size of the matches left out.
  largest_bytes: number; // Size of the device's largest allocation.
  event: number[]; // Index in the file of each row's first event.
  owner_event: number[]; // Index in the file of the allocating operator call.
  stack: number[]; // Index of `stacks`.
  stacks: string[]; // Functions, outermost first, separated by `;`.
}

/** Growth of a device's memory over the steps. */
export interface MemoryGrowth {
  schema: number; // Version of the API's JSON.
  device: string;
  step_count: number;
  growth_bytes: number | null; // Growth per step.
  least_growth_bytes: number | null; // Lower bound per step, with 95 % confidence.
  most_growth_bytes: number | null;
  total_growth_bytes: number | null; // Growth from the first step's end to the last step's.
  confidence: string; // Confidence in growth.
  full_after_step_count: number | null; // Steps until the device is full at this growth.
  steps: Table;
  leaks: Table;
}

/** Unused part of the memory that a device's allocator reserved. */
export interface MemoryFragmentation {
  schema: number; // Version of the API's JSON.
  device: string;
  reserved_peak_ns: number;
  most_reserved_bytes: number;
  unused_bytes: number; // Unused memory at that time.
  unused_share: number | null;
  most_unused_bytes: number; // Peak of the unused memory.
  mean_unused_share: number | null; // Unused fraction of the reserved memory, over time.
  end_unused_bytes: number;
  time_ns: number[];
  over_time_bytes: (number | null)[]; // Unused memory at `time_ns`.
  start_ns: number;
  end_ns: number; // End of the requested range, or of the recorded memory and steps.
}

/** Memory snapshots and timelines in a run's folder. */
export interface MemoryFiles {
  schema: number; // Version of the API's JSON.
  files: MemoryFile[];
}

/** A memory snapshot or timeline in a run's folder. */
export interface MemoryFile {
  id: string;
  name: string;
  what: 'snapshot' | 'timeline';
  file_bytes: number;
  problem: string; // Why it cannot be read here.
}

/** Contents of a memory snapshot or timeline. */
export interface MemoryFileReport {
  schema: number; // Version of the API's JSON.
  id: string;
  name: string;
  what: 'snapshot' | 'timeline';
  summary: string[]; // The main results, in sentences.
  curves: MemoryFileCurve[];
  tables: Table[];
}

/** A chart of a file's values over time. */
export interface MemoryFileCurve {
  title: string;
  is_stacked: boolean; // Whether the lines are parts of a total.
  is_in_time: boolean; // False without recorded times.
  at: number[]; // Times in ns from the first event, or numbers of entries.
  lines: MemoryLine[];
}

/** One line of a chart. */
export interface MemoryLine { id: string; label: string; help: string; bytes: number[]; }

/** Modules with their costs; by instance, a module precedes the modules that it calls. */
export interface Modules {
  schema: number; // Version of the API's JSON.
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the initial sort column, largest first.
  groups: string[]; // The available groupings of this table.
  group: string;
  total_ns: number; // Duration of the window.
  empty: string; // Why the table has no rows, and the code that records them.
  all_row_count: number | null; // Number of all rows, where only the first by `sort` are sent.
  match_count: number | null; // Number of rows that match the request's search.
  sums: string[]; // Keys of columns whose sum over rows is a total.
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
  by: 'class' | 'instance';
  origin: 'Lightning' | 'nn.Module' | 'record_function';
  origin_meaning: string;
  parent: number[]; // Row of the calling module, -1 at the top.
  path: string[]; // The calling modules and itself, separated by `/`.
  event: number[]; // Its first call, as an index in the file.
  start_ns: number[]; // Start of that call.
  end_ns: number[];
  device_label: string; // The vendor's term for a device.
  unassigned_backward_host_ns: number; // Host time of backward calls of unknown modules.
  unassigned_backward_device_ns: number;
  left_out_count: number; // Number of modules left out.
}

/** Operators and device work of a module, or of all modules of a class. */
export interface ModuleWork {
  schema: number; // Version of the API's JSON.
  module_count: number; // Number of modules.
  operators: Table;
  kernels: Table; // Kernels, copies and memory sets.
}

/** Names of a trace by kind. */
export interface Names {
  schema: number; // Version of the API's JSON.
  kinds: NamesOfKind[]; // The recorded kinds.
}

/** Names of one kind, longest total time first; the columns are parallel. */
export interface NamesOfKind {
  kind: 'annotation' | 'kernel' | 'module' | 'operator' | 'source-line';
  names: string[]; // A module's path, a source line's `file:line function`.
  times_ns: number[]; // Total time.
  all_count: number; // Number of all names of this kind.
}

/** Details of the calls of an operator or annotation. */
export interface OperatorDetails {
  schema: number; // Version of the API's JSON.
  name: string;
  kind: string;
  host: TimeDistribution; // Host totals of the calls.
  device: TimeDistribution | null; // Device totals of the calls with device work.
  steps: StepUse[];
  shapes: ShapeUse[];
  shape_count: number;
  stacks: StackUse[];
  stack_count: number;
  stacks_missing: string; // The code that records call stacks.
  kernels: LaunchedWork[];
  kernel_count: number;
  callers: RelatedOperator[];
  callees: RelatedOperator[];
  instances: CallInstance[]; // The longest calls.
}

/** Calls with the same shapes and types of inputs. */
export interface ShapeUse {
  input_dims: string; // JSON.
  input_types: string;
  call_count: number;
  host_total_ns: number;
  device_total_ns: number;
}

/** A kernel, copy or memory set that an operator or its nested calls launched. */
export interface LaunchedWork {
  name: string;
  full_name: string;
  kind: string;
  event_count: number;
  total_ns: number;
  own_ns: number; // Time of the events that the operator launched itself.
  share: number; // Fraction of all device time that the operator launched.
}

/** Step time of one trace by category, with devices and idle causes. */
export interface Overview {
  schema: number; // Version of the API's JSON.
  trace: string;
  worker: string;
  span: string;
  verdict: string; // The sentence of the advice on the trace.
  dialect: string;
  synthetic: boolean;
  device_label: string; // The vendor's term for a device.
  environment: Record<string, string>; // Metadata of the trace.
  window_ns: number;
  step: StepReport;
  categories: Category[];
  steps: StepRow[];
  devices: DeviceReport[];
  idle: IdleCause[];
  top_operators: TopRow[];
  top_kernels: TopRow[];
  longest_gaps: TopRow[];
  health: HealthItem[];
  settings: RunSetting[]; // Settings of the run.
  serving: ServingPhase[]; // Prefill and decode of a serving engine.
}

/** One step and its time by category; `parts_ns` follows `Overview.categories`. */
export interface StepRow {
  number: number;
  name: string;
  start_ns: number;
  duration_ns: number;
  parts_ns: number[];
  host_start_ns: number; // Start on the host.
  host_end_ns: number;
}

/** One cause of device idle time, per step. */
export interface IdleCause {
  id: string;
  label: string;
  help: string;
  idle_ns: number;
  share: number; // Fraction of the step.
  gap_count: number; // Number of idle intervals with this cause in the window.
  start_ns: number | null; // Start of the longest of them.
  end_ns: number | null;
  event: number | null; // The device event that ended it, as its index in the file.
}

/** One line of a short list; `view` and `search` link to its details. */
export interface TopRow {
  name: string;
  detail: string;
  value: number;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  share: number | null;
  view: string;
  search: string;
  full_name: string; // The unabbreviated name, the key of a kernel's details.
  kind: string; // `operator` or `annotation`, for operators.
  start_ns: number | null; // Start and end of a gap.
  end_ns: number | null;
  event: number | null; // The device event that ended a gap, as its index in the file.
}

/** Iterations of a serving engine in one phase; null where their names do not state a number. */
export interface ServingPhase {
  phase: 'decode' | 'mixed' | 'prefill' | 'unknown';
  source: string; // What states the phase.
  iteration_count: number;
  request_count: number | null; // Requests of all iterations, summed.
  prompt_token_count: number | null;
  output_token_count: number | null;
  wall_ns: number; // Duration of the iterations.
  wall_share: number; // Fraction of the duration of all iterations.
  device_busy_ns: number;
  mean_ns: number; // Mean duration of an iteration.
  time_per_output_token_ns: number | null; // How long a request waits for an output token.
}

/** The tables of queries, and whether queries can run. */
export interface QueryTables {
  schema: number; // Version of the API's JSON.
  is_available: boolean; // False.
  install: string; // The command that installs it.
  tables: QueryTable[];
  examples: QueryExample[];
}

/** A table that a query may use. */
export interface QueryTable {
  name: string;
  title: string;
  is_of_run: boolean; // True for a table of all traces of a run.
  columns: QueryColumn[];
}

/** A column that a query may use. */
export interface QueryColumn {
  name: string; // In double quotes where SQL needs them.
  unit: string;
  meaning: string;
}

/** A query to start from. */
export interface QueryExample { title: string; sql: string; }

/** The first rows of a query, in its order. */
export interface QueryRows {
  schema: number; // Version of the API's JSON.
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the initial sort column, largest first.
  groups: string[]; // The available groupings of this table.
  group: string;
  total_ns: number; // Duration of the window.
  empty: string; // Why the table has no rows, and the code that records them.
  all_row_count: number | null; // Number of all rows, where only the first by `sort` are sent.
  match_count: number | null; // Number of rows that match the request's search.
  sums: string[]; // Keys of columns whose sum over rows is a total.
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
  is_counted: boolean; // False.
  notes: string[]; // Traces whose rows are missing, in sentences.
}

/** The description of a rule, as `stepscope explain` prints it. */
export interface RulePage {
  schema: number; // Version of the API's JSON.
  rule: string; // The rule's id, also for a request by an alias.
  title: string;
  text: string; // Markdown.
}

/** All public tables. */
export interface Tables {
  schema: number; // Version of the API's JSON.
  tables: TableInfo[];
}

/** One public table. */
export interface TableInfo {
  name: string;
  title: string;
  meaning: string; // Subject of a row and purpose of the table.
  is_of_run: boolean; // True for a table of all traces of a run.
  columns: string[];
}

/** The tracks of a trace, in the order of the page. */
export interface Timeline {
  schema: number; // Version of the API's JSON.
  start_ns: number;
  end_ns: number; // End of the last slice, from the trace's first event.
  window_ns: number; // Duration of the window, as in the Overview.
  names_count: number;
  tracks: TimelineTrack[];
  categories: TimelineCategory[]; // A slice's category code is an index of these.
  steps: TimelineStep[]; // The complete steps.
  note: string; // Events that the tracks leave out, and why.
  levels: number[]; // The levels of tiles that there are, in a shared file.
}

/** A track, or the header of a group of tracks. */
export interface TimelineTrack {
  id: number;
  parent: number | null; // The header of its group.
  kind: 'annotations' | 'counter' | 'group' | 'idle' | 'other' | 'steps' | 'stream' | 'thread';
  label: string;
  detail: string;
  row_count: number; // Rows of slices.
  event_count: number | null; // Number of events.
  busy_ns: number | null; // Time in the window with any slice.
  order: number; // Position among the tracks.
  unit: string; // Unit of a counter's values.
  is_open: boolean; // Whether it is expanded at first.
}

/** A category of slices. */
export interface TimelineCategory { id: string; label: string; }

/** A step of the host. */
export interface TimelineStep { number: number; start_ns: number; end_ns: number; }

/** Names of slices; a slice's name code is an index of these. */
export interface TimelineNames {
  schema: number; // Version of the API's JSON.
  names: string[];
}

/** A counter in buckets of equal length; null where no value is known. */
export interface TimelineCounter {
  schema: number; // Version of the API's JSON.
  track: number;
  level: number;
  tile: number;
  start_ns: number;
  bucket_ns: number;
  unit: string;
  least: number | null; // The least value of the whole trace.
  most: number | null;
  min: (number | null)[]; // The least value in each bucket, with the value at its start.
  max: (number | null)[];
  last: (number | null)[]; // The value at the end of the bucket.
}

/** An excerpt of the timeline; the event and the times are inside its range. */
export interface TimelineExcerpt {
  schema: number; // Version of the API's JSON.
  start_ns: number;
  end_ns: number;
  event: ExcerptEvent | null; // Null where none was requested.
  lanes: ExcerptLane[];
}

/** The event; it is in the first lane. */
export interface ExcerptEvent {
  row: number; // Row in its track.
  start_ns: number;
  end_ns: number;
}

/** Consecutive rows of a track. Lists of one length are parallel: slices, the short ones merged. */
export interface ExcerptLane {
  track: number | null; // The track's number.
  label: string; // Empty without a track.
  first_row: number; // Number of rows of the track above the first one.
  row_count: number;
  rows_below: number; // Rows with slices in the range below the last one.
  names: string[];
  categories: string[]; // Category of each of `names`.
  rows: number[]; // Row of each slice in the track.
  start_ns: number[];
  end_ns: number[];
  name: number[]; // Index of the longest slice's name in `names`.
  count: number[]; // Number of slices.
}

/** Details of one slice. */
export interface TimelineSlice {
  schema: number; // Version of the API's JSON.
  event: number;
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number; // Recorded start.
  duration_ns: number; // Recorded duration, or the drawn one where that is longer than a track can draw.
  self_ns: number | null; // Time without nested slices.
  device_ns: number | null; // Sum of the device work that it and its nested calls launched.
  arguments: SliceArgument[];
  stack: SliceFrame[]; // The Python functions around it, outermost first.
  stack_of: string; // Owner of the stack.
  parents: SliceParent[]; // The slices around it, outermost first.
  child_count: number;
  module: string | null;
  operator: SliceParent | null; // The innermost operator around it, or around its launch.
  step: number | null; // Number of the step in which it, or its launch, began.
  links: SliceLink[];
  link_counts: Record<string, number>; // Number of links by kind.
}

/** An argument of an event. */
export interface SliceArgument {
  key: string;
  value: string | number;
  is_cut: boolean; // Whether the value is abbreviated.
}

/** A Python function of a stack. */
export interface SliceFrame {
  function: string;
  file: string; // Empty for built-in functions.
  line: number;
}

/** A slice that contains another. */
export interface SliceParent { event: number; name: string; category: string; }

/** A slice that is linked with another. */
export interface SliceLink {
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number;
  duration_ns: number;
  event: number; // Index of its event in the file.
  kind: string; // Role of this slice.
}

/** Slices, by time. */
export interface TimelineHits {
  schema: number; // Version of the API's JSON.
  total: number;
  hits: TimelineHit[]; // A page of the slices.
  first: number; // Number of slices before the page.
  density: number[]; // Of a search.
}

/** A slice and its position. */
export interface TimelineHit {
  event: number | null; // Index of its event in the file.
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number;
  duration_ns: number;
}

/** A slice next to another slice, or nearest to a time. */
export interface TimelineNeighbour {
  schema: number; // Version of the API's JSON.
  hit: TimelineHit | null; // Null without such a slice.
}

/** Slices in an area of the timeline. */
export interface TimelineArea {
  schema: number; // Version of the API's JSON.
  start_ns: number;
  end_ns: number;
  table: Table; // Slices by name, with their time inside the area.
  tracks: AreaTrack[];
}

/** One track's time in an area. */
export interface AreaTrack { track: number; busy_ns: number; idle_ns: number; slice_count: number; }

/** Metrics over the spans of a run, or over runs. */
export interface Trends {
  schema: number; // Version of the API's JSON.
  figures: TrendFigure[];
  points: TrendPoint[]; // By run, the earliest recorded first (from the files' names), then by span.
  waiting_count: number; // Traces that are not read yet.
  unreadable_count: number; // Traces that cannot be read.
}

/** A metric of the trends. */
export interface TrendFigure {
  name: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  meaning: string;
  label: string;
}

/** A run's metrics at one span: means over workers, the maximum for `memory_peak_bytes`. */
export interface TrendPoint {
  run: string; // The run's id.
  run_name: string;
  span: number; // Number of the workers' trace, from 1.
  traces: string[]; // Ids of its traces, one per worker.
  figures: Record<string, number | null>; // By name.
  least_step_ns: number | null; // Mean step time of the fastest worker.
  most_step_ns: number | null; // Mean step time of the slowest worker.
  step_count: number; // Complete steps of all its workers.
  finding_count: number; // Findings of its traces, symptoms and notes included.
  severity_counts: Record<string, number>; // Findings by their most serious severity.
  recoverable_shares: Record<string, number>;
}

/** A simulated step and the recorded one; without steps, the times are of the whole trace. */
export interface WhatIfStep {
  schema: number; // Version of the API's JSON.
  headline: string; // The result in one sentence.
  limit: string; // What takes most of the path to the simulated end.
  fidelity: string; // How well the replay describes this trace.
  step_count: number;
  recorded_ns: number;
  simulated_ns: number;
  slowest_ns: number; // The simulated time where the fixes save least.
  replay_error: number; // Error of a replay with typical delays, as a fraction of the recorded time.
  parts: WhatIfPart[]; // They sum to the step.
  matches: number[]; // Number of events that each scale matches.
  assumptions: string[]; // What the prediction assumes, in sentences.
}

/** Time of one kind on the path that determines the end. */
export interface WhatIfPart { name: string; recorded_ns: number; simulated_ns: number; }

/** Contents of a trace that a simulation can change. */
export interface WhatIfNames {
  schema: number; // Version of the API's JSON.
  kernels: ScalableNames; // Device events.
  operators: ScalableNames; // Operators and annotations on the host, without those of steps.
  wait_count: number; // Number of calls that wait for the device.
  batch_count: number; // Number of batches that were fetched from a DataLoader.
}

/** Names of events, longest total time first; the columns are parallel. */
export interface ScalableNames {
  names: string[]; // As the profiler wrote them, which is what patterns match.
  times_ns: number[]; // Sum of the events' durations.
  counts: number[]; // Number of events.
  all_count: number; // Number of all names.
}

/** The fixes of a trace's findings that save time. */
export interface WhatIfFixes {
  schema: number; // Version of the API's JSON.
  fixes: WhatIfFix[];
}

/** The fix of one rule's findings. */
export interface WhatIfFix {
  rule: string;
  title: string;
  is_applied: boolean;
  low_ns: number; // The least time per step that it saves on top of the changes.
  high_ns: number; // The most.
}

/** One step as recorded and as simulated: the training loop, and the busiest streams. */
export interface WhatIfTimeline {
  schema: number; // Version of the API's JSON.
  step: number | null; // The step's number.
  steps: number[]; // Numbers of all complete steps.
  start_ns: number; // Recorded start, in ns from the trace's first event.
  recorded_ns: number; // Length of the step on the host.
  simulated_ns: number;
  categories: string[]; // Ids of the categories.
  lanes: WhatIfLane[];
}

/** A row of events, as recorded and as simulated. */
export interface WhatIfLane {
  label: string;
  names: string[];
  recorded: WhatIfBlocks;
  simulated: WhatIfBlocks;
}

/** Events of a lane by start, the short ones merged; the columns are parallel. */
export interface WhatIfBlocks {
  start_ns: number[]; // From the step's start.
  end_ns: number[];
  names: number[]; // Index of the first event's name in the lane's names.
  categories: number[]; // Index of the first event's category in the timeline's categories.
  counts: number[]; // Number of events.
  changes_ns: number[]; // Simulated minus recorded time of the events.
}
