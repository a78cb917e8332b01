/* Generated from plugin/stepscope/api by `npm run types`; do not edit. */

/** Paths below `api/` that are read, each with its query and its response. */
export interface Gets {
  'runs': [object, Runs];
  'runs/{run}/advice': [{ trace?: string }, RunReport];
  'schema': [object, unknown];
  'openapi.json': [object, unknown];
  'comparison': [ComparisonQuery, ComparisonResult];
  'distributed': [{ run: string; span?: string }, Distributed];
  'distributed/steps': [DistributedStepsQuery, RankSteps];
  'distributed/ranks': [{ run: string; span?: string; step?: number }, RankBreakdown];
  'distributed/collectives': [DistributedCollectivesQuery, Collectives];
  'distributed/collective': [DistributedCollectiveQuery, CollectiveRanks];
  'distributed/groups': [{ run: string; span?: string }, Table];
  'distributed/devices': [{ run: string; span?: string }, Table];
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
  'traces/{trace}/overview': [object, Overview];
  'rules/{rule}': [object, RulePage];
  'tables': [object, Tables];
  'traces/{trace}/tables/{name}': [TablesQuery, Table];
  'runs/{run}/tables/clock-alignment': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/matched-collectives': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/outlier-ranks': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/ranks': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/representative-ranks': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/stragglers': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'runs/{run}/tables/trends': [{ sort?: string; descending?: boolean; limit?: number }, Table];
  'traces/{trace}/timeline/tracks': [object, Timeline];
  'traces/{trace}/timeline/names': [object, TimelineNames];
  'traces/{trace}/timeline/tiles': [{ level: number; tile: number; tracks?: string }, ArrayBuffer];
  'traces/{trace}/timeline/counters': [{ track: number; level: number; tile: number }, TimelineCounter];
  'traces/{trace}/timeline/slices/{event}': [object, TimelineSlice];
  'traces/{trace}/timeline/slices': [TimelineSlicesQuery, TimelineHits];
  'traces/{trace}/timeline/search': [TimelineSearchQuery, TimelineHits];
  'traces/{trace}/timeline/neighbour': [TimelineNeighbourQuery, TimelineNeighbour];
  'traces/{trace}/timeline/at': [{ track: number; row: number; time_ns: number }, TimelineNeighbour];
  'traces/{trace}/timeline/area': [{ start_ns: number; end_ns: number; tracks?: string }, TimelineArea];
  'trends': [TrendsQuery, Trends];
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
  base_run: string;
  base_worker?: string;
  base_span?: string;
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
  direction?: 'callees' | 'callers';
  name?: string;
  root?: string;
  pieces?: number;
  subject?: 'calls' | 'memory' | 'modules';
  measure?: 'device' | 'host';
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

export interface TablesQuery {
  start_ns?: number;
  end_ns?: number;
  sort?: string;
  descending?: boolean;
  limit?: number;
}

export interface TimelineSlicesQuery { track: number; start_ns: number; end_ns: number; limit?: number; }

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

/** Everything found under the log directory. */
export interface Runs {
  schema: number;
  logdir: string;
  scanning: boolean; // True until the first look through the folder is over.
  loading: boolean; // True while any file is queued or being read.
  runs: RunState[];
  problems: Problem[];
  looked_for: string; // Which file names count as traces.
  looked_at_count: number; // Files that the look through the folder has seen so far, traces or not.
  is_cancelled: boolean; // True where the user ended the look.
}

/** A run: a folder with traces. */
export interface RunState {
  id: string;
  name: string;
  synthetic: boolean;
  state: 'cancelled' | 'queued' | 'reading' | 'ready' | 'unreadable';
  workers: Worker[];
}

/** One process of a run. */
export interface Worker {
  name: string;
  rank: number | null;
  spans: Span[];
  host: string | null; // The machine that it ran on.
}

/** One recording of a worker: one trace file. */
export interface Span {
  trace: string;
  label: string; // `1`, `2`, … in order of recording.
  file: string; // The file's name, for people.
  state: 'cancelled' | 'queued' | 'reading' | 'ready' | 'unreadable';
  progress: Progress | null;
  problem: Problem | null;
  place: number | null; // Of a file that is queued.
  file_bytes: number; // How long the file is, as it lies on disk.
  events: number | null; // None until it was read.
  damage: 'critical' | 'info' | 'warning' | null; // The worst that was found damaged in it.
  is_growing: boolean; // True of a queued file that somebody still writes.
}

/** How far the reading of one file has come. */
export interface Progress {
  phase: 'advising' | 'analysing' | 'reading' | 'waiting';
  bytes_done: number; // Of the file as it lies on disk.
  bytes_total: number;
  events: number;
  elapsed_ns: number;
  left_ns: number | null; // Until it is ready, by what was measured so far.
}

/** A file or folder that could not be read, and the remedy. */
export interface Problem { path: string; message: string; remedy: string; }

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
  standing: OverallStatus | null; // None if no rules ran.
  file: string; // The name of its file, without the folder.
  settings: RunSetting[]; // Settings of the run that the trace handler recorded.
  host: string; // The machine's name.
  groups: string[]; // Parts of the job that it belongs to.
  world_size: number | null; // Ranks of the job.
  is_training: boolean | null; // Whether a backward pass or an optimizer step was recorded.
  wait_ns: number | null; // Exposed time per step waiting for other ranks in collectives.
}

/** The mean step. Without steps, `count` is 0 and the numbers are for the whole window. */
export interface StepReport {
  count: number;
  mean_ns: number;
  standard_deviation_ns: number;
  breakdown_ns: Record<string, number>; // Category to nanoseconds of the mean step.
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
  is_symptom: boolean; // Whether it names no cause, and therefore claims no saving.
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
  gross_ns: number;
  net_low_ns: number;
  net_high_ns: number;
  net_share: number; // `net_high_ns` as a fraction of the step (or window).
  method: string; // One sentence on how the saving was estimated.
  steps: string; // Numbers of the steps that contain some of it, as ranges.
  counted_under: string[]; // Rules whose findings count the rest of `gross_ns`.
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
  net_low_ns: number | null;
  net_median_ns: number | null;
  net_high_ns: number | null; // Minimum, median and maximum potential saving per step in one trace.
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
  net_high_ns: number | null; // Maximum saving there per step.
  peers_net_high_ns: number | null; // The same in the median peer, 0 if it has no such finding.
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
}

/** A trace that represents part of a run. */
export interface RepresentativeTrace {
  kind: 'fastest' | 'median' | 'odd' | 'slowest'; // By compute time, excluding waiting for other ranks.
  trace: string; // Id of the trace.
  rank: number | null;
  name: string; // Name of the worker.
  reason: string; // Reason for its selection, as sentences.
}

/** Why a request has no answer. */
export interface ApiError { code: string; message: string; hint: string; }

/** What changed between two sides. */
export interface ComparisonResult {
  schema: number;
  before: ComparedSide;
  after: ComparedSide;
  is_same: boolean; // True where both sides are the same recordings.
  has_other_devices: boolean; // True where the sides ran on different devices.
  comparison: Comparison;
  modules: ModuleRow[]; // Empty where one of the sides has no modules recorded.
  test: string; // How changes are told from noise.
  significance: string; // Significance of the step's change, as text.
  status_labels: Record<string, string>; // Labels of the statuses of rows.
}

/** The recordings of one side, and those that are not in it yet. */
export interface ComparedSide {
  waiting_count: number; // Recordings of it that are still to be read.
  problems: Problem[]; // Of its recordings that cannot be read, and are left out.
  step_ns: number[]; // Each step's time, in order.
  devices: string; // The names of its devices, or their kind where names were not recorded.
}

/** Two sides and their differences. */
export interface Comparison {
  before: Side;
  after: Side;
  step: Change;
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
  kind: 'annotation' | 'copy' | 'kernel' | 'memory-set' | 'operator';
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
  rules: string[]; // The rules whose findings are fixed.
  predicted_low_ns: number;
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
}

/** What a run of several ranks is, and how much of it was recorded. */
export interface Distributed {
  schema: number;
  span: string;
  world_size: number | null; // Ranks of the job.
  ranks: RankInfo[]; // By rank.
  missing_count: number;
  missing_ranks: string; // Ranks of the job without a recording.
  waiting_count: number; // Files that are still to be read.
  problems: Problem[];
  host_count: number; // Machines that the recordings name.
  has_device: boolean;
  group_count: number;
  steps: number[]; // Numbers of the steps that any rank recorded whole.
  mean_step_ns: number; // Over steps and ranks.
  collective_count: number; // Collectives of the run, each counted once.
  matched_count: number; // Of those, how many were found on more than one rank.
  clocks: RunClocks;
  stragglers: Straggler[]; // Stragglers first, then whoever came latest.
  straggler_count: number;
  representatives: Representative[]; // The few ranks to look at.
  outliers: OutlierRank[]; // The farthest first.
  outlier_count: number;
  groups: GroupInfo[]; // Those in which most time goes first.
  unreadable_ranks: string; // Of the missing ranks those whose file is there and cannot be read.
}

/** One recording of the run; null where nothing tells. */
export interface RankInfo {
  rank: number | null;
  rank_source: string | null; // `header` (distributedInfo.rank), `file name`, `content` or `device`.
  rank_confidence: string | null;
  worker: string;
  host: string | null;
  device_name: string | null;
  step_count: number; // Steps recorded whole.
}

/** How the ranks' clocks were brought together. */
export interface RunClocks {
  reference: string; // The worker with whose clock the others are aligned.
  machine_count: number; // Recordings that share its machine, and so its clock.
  collective_count: number;
  lost_count: number; // Recordings that could not be aligned with it.
  error_ns: number | null; // No clock is further off than this.
  likely_error_ns: number | null; // Ranks mostly leave a collective within this of each other.
  drift_count: number; // Recordings whose clock also runs faster or slower.
}

/** A rank that comes late to collectives. */
export interface Straggler {
  rank: number | null;
  worker: string;
  is_straggler: boolean; // Whether that is beyond what is usual among the ranks, and 1 % of a step or more.
  score: number | null; // Modified z-score over the ranks of its lateness or own work, whichever is larger.
  own_excess_ns: number | null;
  found_by: '' | 'lateness' | 'own work'; // What tells that it is a straggler.
  lateness_ns: number | null; // Mean over the collectives of the group in which it is least late.
  collective_count: number;
  last_count: number; // To how many of those it came last.
  wait_caused_ns: number; // What the others together waited for it a step.
  wait_ns: number; // What it waited for others a step.
  since_step: number | null;
  late_steps: number[]; // Steps in which it was later than half of what it is on average.
  cause: string | null; // What takes longer on it than on the median rank.
  cause_ns: number | null;
}

/** One of the few ranks to look at. */
export interface Representative {
  rank: number | null;
  worker: string;
  host: string | null;
  kind: 'fastest' | 'median' | 'odd' | 'slowest';
  figure: string; // Which figure that is.
  value: number;
  usual: number; // The median of the ranks that it is compared with.
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  score: number; // Modified z-score among them.
  step_ns: number; // Its mean step.
  reason: string;
}

/** A figure of a rank, or of a machine, that lies far from what is usual. */
export interface OutlierRank {
  rank: number | null; // Null of a machine.
  worker: string; // Empty of a machine.
  host: string | null;
  is_host: boolean;
  figure: string;
  label: string;
  value: number;
  usual: number;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  score: number;
  is_sure: boolean; // Whether it is compared with eight or more, over as many steps as most have.
  reason: string;
}

/** A process group of the job. */
export interface GroupInfo {
  name: string; // What torch calls it.
  description: string;
  role: string; // `DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`.
  role_confidence: string;
  why: string; // What tells the role.
  size: number | null;
  ranks: string; // `0-7`.
}

/** One figure of every rank and step: value times `scale`; null where it was not recorded. */
export interface RankSteps {
  schema: number;
  metric: string;
  label: string;
  help: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  is_high_bad: boolean;
  scale: number;
  workers: string[]; // Of the rows.
  ranks: (number | null)[];
  hosts: (string | null)[];
  steps: number[]; // Of the columns.
  values: ((number | null)[])[];
  left_out_count: number; // Steps beyond what is sent.
  waiting_count: number;
  empty: string; // Where no value is known.
}

/** Where a step of every rank goes: the mean one, or a chosen one. */
export interface RankBreakdown {
  schema: number;
  step: number | null;
  categories: Category[];
  rows: RankRow[];
  without_step: string[]; // Workers that did not record the chosen step.
  waiting_count: number;
}

/** One category of step time. */
export interface Category { id: string; label: string; help: string; }

/** Where a step of one rank goes. */
export interface RankRow {
  rank: number | null;
  worker: string;
  host: string | null;
  step_count: number;
  duration_ns: number;
  parts_ns: number[]; // They follow `categories`, and sum to it.
  communication_ns: number; // Hidden or not.
  transfer_ns: number | null; // What of that is transfer.
  wait_ns: number | null; // What of it is waiting for other ranks.
  exposed_ns: number;
  overlap_share: number | null;
  idle_ns: number | null; // Its busiest device does nothing.
  late_ns: number | null; // Mean lateness in a collective, in the group in which it is least late.
}

/** A table of collectives, and for each row which collective it leads to. */
export interface Collectives {
  schema: number;
  table: Table;
  opens: CollectiveRef[]; // The one itself.
  step: number | null;
  worker: string;
  waiting_count: number;
}

/** A table by columns; `values[key]` has `row_count` entries, null where not recorded. */
export interface Table {
  schema: number;
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the column to sort by at first, largest first.
  groups: string[]; // The groupings that this table can be asked for.
  group: string;
  total_ns: number; // What the share columns are a share of.
  empty: string; // Where there is no row.
  all_row_count: number | null; // How many rows there are, where perhaps only the first by `sort` were sent.
  sums: string[]; // Keys of columns whose values, added over rows, are something's total.
  title: string;
  meaning: string; // What a row is, and what the table tells.
}

/** One column of a table. */
export interface Column {
  key: string;
  label: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  help: string;
  hidden: boolean; // True where the column is off until asked for.
}

/** A collective by one of its members; more files that are read do not change that. */
export interface CollectiveRef { worker: string; event: number; }

/** One collective on all its ranks, on one clock. */
export interface CollectiveRanks {
  schema: number;
  kind: string;
  group: string;
  description: string;
  role: string;
  sequence: number | null;
  step: number | null;
  dtype: string;
  message_bytes: number | null;
  matched_by: string; // `sequence`, `order`, or empty where it was found on one rank only.
  expected_count: number | null;
  missing_ranks: string;
  transfer_ns: number | null;
  wait_ns: number; // Sum over the ranks.
  length_ns: number; // From the first rank's start to the last one's end.
  algorithm_bytes_per_second: number | null;
  bus_bytes_per_second: number | null;
  aligned_by: 'clocks' | 'ends';
  error_ns: number | null;
  members: CollectiveMember[];
  before: CollectiveRef | null; // The one before of the same kind, group, type and size.
  after: CollectiveRef | null;
  place: number; // Which of those it is, from 1.
  alike_count: number;
}

/** One rank of a collective. */
export interface CollectiveMember {
  rank: number | null;
  worker: string;
  host: string | null;
  event: number;
  start_ns: number; // From the first rank's start.
  duration_ns: number;
  wait_ns: number; // Of that, before only the transfer was left.
  exposed_ns: number;
  is_last: boolean;
}

/** What is installed beside stepscope that opens recordings. */
export interface Tools {
  schema: number;
  perfetto: string; // Address of Perfetto's own page, from this server.
  perfetto_hint: string; // How to install it.
}

/** A flame graph by columns: nodes by depth, those of one parent together, heaviest first. */
export interface FlameGraph {
  schema: number;
  unit: 'bytes' | 'ns'; // Of `own`, `total` and `whole`.
  kinds: FlameKind[];
  names: string[];
  name_kinds: number[]; // What each of `names` is.
  parent: number[]; // Of each node.
  name: number[]; // Of each node.
  own: number[]; // Of each node without those below it, in `unit`.
  total: number[]; // Of each node with all below it, in `unit`.
  calls: number[]; // How often each was called.
  merged_count: number[]; // How many frames a node of the kind `smaller` stands for.
  whole: number; // The sum of all, in `unit`.
  steps: number; // How many steps that is of.
  before_own: number[]; // As `own`, of the baseline.
  before_total: number[]; // As `total`, of the baseline.
  before_calls: number[]; // As `calls`, of the baseline.
  before_whole: number; // As `whole`, of the baseline.
  before_steps: number; // As `steps`, of the baseline.
  is_per_step: boolean; // Whether values are of whole steps, and are read divided by their number.
  root: number; // The node that fills the picture, as far as `root` was found.
  node_count: number; // How many nodes there are in full.
  devices: string[]; // Of memory.
  device: string; // Of memory.
  at_ns: number | null; // Of memory.
  note: string; // What to know about it.
  remedy: string; // The code that would record more.
  empty: string; // Where there is nothing.
}

/** What a frame can be. */
export interface FlameKind { id: string; label: string; }

/** Each name of a flame graph once, the largest own value first. */
export interface FlameFunctions {
  schema: number;
  unit: 'bytes' | 'ns';
  kinds: FlameKind[];
  names: string[];
  name_kinds: number[]; // What each of `names` is.
  own: number[]; // Without what it calls, in `unit`.
  total: number[]; // With what it calls, once where it calls itself, in `unit`.
  calls: number[];
  whole: number; // The sum of all own values, in `unit`.
  steps: number; // How many steps that is of.
  all_count: number; // How many names there are, of which the largest are listed.
  before_own: number[]; // As `own`, of the baseline.
  before_total: number[]; // As `total`, of the baseline.
  before_calls: number[]; // As `calls`, of the baseline.
  before_whole: number; // As `whole`, of the baseline.
  before_steps: number; // As `steps`, of the baseline.
  is_per_step: boolean; // Whether values are of whole steps, and are read divided by their number.
}

/** Everything about one kernel's runs. */
export interface KernelDetails {
  schema: number;
  name: string;
  full_name: string;
  durations: TimeDistribution;
  delays: TimeDistribution | null; // From the launching call's end to the kernel's begin, at least 0.
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

/** How times spread. */
export interface TimeDistribution {
  count: number;
  total_ns: number;
  min_ns: number;
  mean_ns: number;
  p50_ns: number;
  p95_ns: number;
  max_ns: number;
  edges_ns: number[]; // Of the bins.
  counts: number[];
  is_logarithmic: boolean; // Whether the bins grow by a factor each, since the times are so far apart.
}

/** What one step has of it. */
export interface StepUse {
  number: number;
  call_count: number;
  time_ns: number; // Host total of an operator, duration of a kernel.
  device_ns: number; // Device time that an operator's calls launched, with calls within.
}

/** Runs that were launched alike. */
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
  time_ns: number; // Of those calls.
  share: number; // Of the time of all rows of this list.
}

/** Calls from the same Python functions, the innermost first. */
export interface StackUse {
  frames: StackFrame[];
  call_count: number;
  time_ns: number; // Host total of an operator, duration of a kernel.
  device_ns: number;
}

/** One Python function of a call stack. */
export interface StackFrame {
  text: string; // As the profiler wrote it.
  line: SourceLine | null; // Where it is, if that can be told from the text.
}

/** One call, or one run of a kernel. */
export interface CallInstance {
  event: number;
  start_ns: number;
  duration_ns: number;
  device_ns: number;
  track: string; // The thread.
  step: number | null; // The number in `ProfilerStep#N`.
}

/** A device's memory over time. */
export interface MemoryOverTime {
  schema: number;
  devices: MemoryDeviceFacts[];
  device: string; // Which of them this is.
  start_ns: number;
  end_ns: number; // The time that is shown.
  levels: MemoryLevels;
  peak: MemoryPoint | null; // The most that was allocated in the time shown.
  reserved_peak: MemoryPoint | null;
  ooms: MemoryOom[];
  oom_count: number;
  steps: MemoryStep[];
  notes: string[]; // What should be known before the curve is believed.
}

/** One device whose memory was recorded. */
export interface MemoryDeviceFacts {
  id: string; // `CPU`, `CUDA 0`, `HIP 1`.
  peak_bytes: number; // The most that tensors held.
  peak_ns: number; // When, the first time.
  most_reserved_bytes: number | null; // The most that the caching allocator took from the device.
  capacity_bytes: number | null; // All that the device has.
  event_count: number; // Allocations and releases.
  has_totals: boolean; // False before torch 1.10, which wrote no totals.
}

/** Levels behind events of the recording; each holds until the next. */
export interface MemoryLevels {
  time_ns: number[];
  allocated_bytes: (number | null)[];
  reserved_bytes: (number | null)[]; // Empty where the allocator keeps no cache.
  event_count: number; // How many events there are in that time.
}

/** A moment of the curve. */
export interface MemoryPoint { time_ns: number; bytes: number; }

/** A time that the device ran out of memory. */
export interface MemoryOom {
  event: number;
  time_ns: number;
  asked_bytes: number | null;
  unused_bytes: number | null; // Reserved then, and not allocated.
  cause: string; // `fragmented`.
  operator: string | null;
}

/** A step of the host, for orientation. */
export interface MemoryStep { number: number; start_ns: number; end_ns: number; }

/** Who held the memory, the most first; `name` and `origin` say who. */
export interface MemoryHolders {
  schema: number;
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the column to sort by at first, largest first.
  groups: string[]; // The groupings that this table can be asked for.
  group: string;
  total_ns: number; // What the share columns are a share of.
  empty: string; // Where there is no row.
  all_row_count: number | null; // How many rows there are, where perhaps only the first by `sort` were sent.
  sums: string[]; // Keys of columns whose values, added over rows, are something's total.
  title: string;
  meaning: string; // What a row is, and what the table tells.
  device: string;
  moment_ns: number;
  held_bytes: number | null; // All that was held.
  reserved_bytes: number | null;
  recorded_bytes: number; // Of it, allocated while recording.
  earlier_bytes: number; // Of it, allocated before and freed while recording.
  untold_bytes: number | null; // The rest.
  is_peak: boolean; // Whether it is the most that the device held in all of the recording.
  left_out_count: number; // So many further holders are not among the rows.
  left_out_bytes: number;
}

/** Allocations, the first by `sort`; the others are counted. Rows are parallel to the lists. */
export interface MemoryAllocations {
  schema: number;
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the column to sort by at first, largest first.
  groups: string[]; // The groupings that this table can be asked for.
  group: string;
  total_ns: number; // What the share columns are a share of.
  empty: string; // Where there is no row.
  all_row_count: number | null; // How many rows there are, where perhaps only the first by `sort` were sent.
  sums: string[]; // Keys of columns whose values, added over rows, are something's total.
  title: string;
  meaning: string; // What a row is, and what the table tells.
  device: string;
  found_count: number; // How many fit what was asked.
  found_bytes: number;
  left_out_bytes: number; // Of it, in those that are not among the rows.
  largest_bytes: number; // The largest allocation of the device, whatever was asked.
  event: number[]; // The place in the file of each row's first event.
  owner_event: number[]; // The operator's call that allocated it.
  stack: number[]; // Which of `stacks`.
  stacks: string[]; // Functions, outermost first, parted by `;`.
}

/** How a device's memory grows over the steps. */
export interface MemoryGrowth {
  schema: number;
  device: string;
  step_count: number;
  growth_bytes: number | null; // A step.
  least_growth_bytes: number | null; // A step, with 95 % confidence.
  most_growth_bytes: number | null;
  total_growth_bytes: number | null; // From the first step's end to the last's.
  confidence: string; // That it grows.
  full_after_step_count: number | null; // Steps until the device is full, were it to go on.
  steps: Table;
  leaks: Table;
}

/** How much of what a device's allocator reserved lay unused. */
export interface MemoryFragmentation {
  schema: number;
  device: string;
  reserved_peak_ns: number;
  most_reserved_bytes: number;
  unused_bytes: number; // Of it, not allocated then.
  unused_share: number | null;
  most_unused_bytes: number; // The most that was ever unused.
  mean_unused_share: number | null; // Unused of reserved, both over time.
  end_unused_bytes: number;
  time_ns: number[];
  over_time_bytes: (number | null)[]; // Reserved and not allocated, at the times beside it.
  start_ns: number;
  end_ns: number; // The time of those.
}

/** All of them. */
export interface MemoryFiles { schema: number; files: MemoryFile[]; }

/** A memory snapshot or timeline in a run's folder. */
export interface MemoryFile {
  id: string;
  name: string;
  what: 'snapshot' | 'timeline';
  file_bytes: number;
  problem: string; // Why it cannot be read here.
}

/** What a memory snapshot or timeline tells. */
export interface MemoryFileReport {
  schema: number;
  id: string;
  name: string;
  what: 'snapshot' | 'timeline';
  summary: string[]; // Sentences.
  curves: MemoryFileCurve[];
  tables: Table[];
}

/** A chart of what a file tells over time. */
export interface MemoryFileCurve {
  title: string;
  is_stacked: boolean; // Whether the lines are parts of one whole.
  is_in_time: boolean; // False where no times were recorded.
  at: number[]; // In ns from the first event, or the number of the entry.
  lines: MemoryLine[];
}

/** One line of a chart. */
export interface MemoryLine { id: string; label: string; help: string; bytes: number[]; }

/** Modules and what they cost; by instance each is followed by those that it calls. */
export interface Modules {
  schema: number;
  columns: Column[];
  row_count: number;
  values: Record<string, unknown[]>;
  sort: string; // Key of the column to sort by at first, largest first.
  groups: string[]; // The groupings that this table can be asked for.
  group: string;
  total_ns: number; // What the share columns are a share of.
  empty: string; // Where there is no row.
  all_row_count: number | null; // How many rows there are, where perhaps only the first by `sort` were sent.
  sums: string[]; // Keys of columns whose values, added over rows, are something's total.
  title: string;
  meaning: string; // What a row is, and what the table tells.
  by: 'class' | 'instance';
  origin: 'Lightning' | 'nn.Module' | 'record_function';
  origin_meaning: string;
  parent: number[]; // The row of the module that called it, -1 at the top.
  path: string[]; // The modules that called it and itself, parted by `/`.
  event: number[]; // Its first call, by the event's place in the file.
  start_ns: number[]; // When that began.
  end_ns: number[];
  device_label: string; // What this vendor calls a device.
  unassigned_backward_host_ns: number; // Host time of backward calls whose module is not known.
  unassigned_backward_device_ns: number;
  left_out_count: number; // So many modules, the deepest and last, are not among the rows.
}

/** What ran for a module, or for all modules of a class. */
export interface ModuleWork {
  schema: number;
  module_count: number; // So many modules these are.
  operators: Table;
  kernels: Table; // Kernels, copies and memory sets.
}

/** What in a recording has a name. */
export interface Names {
  schema: number;
  kinds: NamesOfKind[]; // Kinds that were recorded.
}

/** Names of one kind, what takes longest first; the columns have the same length. */
export interface NamesOfKind {
  kind: 'annotation' | 'kernel' | 'module' | 'operator' | 'source-line';
  names: string[]; // A module's is its path, a source line's `file:line function`.
  times_ns: number[]; // Total time.
  all_count: number; // How many names of this kind there are, with those that were left out.
}

/** Everything about one operator's or annotation's calls. */
export interface OperatorDetails {
  schema: number;
  name: string;
  kind: string;
  host: TimeDistribution; // Host total of each call.
  device: TimeDistribution | null; // Device total of the calls that launched anything.
  steps: StepUse[];
  shapes: ShapeUse[];
  shape_count: number;
  stacks: StackUse[];
  stack_count: number;
  stacks_missing: string; // The line of code that records call stacks, where there are none.
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

/** A kernel, copy or memory set that an operator launched, itself or in calls within. */
export interface LaunchedWork {
  name: string;
  full_name: string;
  kind: string;
  event_count: number;
  total_ns: number;
  own_ns: number; // Of it, what no operator within launched.
  share: number; // Of all that the operator launched.
}

/** Where the step time of one recording goes. */
export interface Overview {
  schema: number;
  trace: string;
  worker: string;
  span: string;
  verdict: string;
  dialect: string;
  synthetic: boolean;
  device_label: string; // What this vendor calls a device.
  environment: Record<string, string>; // What the trace says of how it was made.
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
}

/** One step and where its time went; `parts_ns` follows `Overview.categories`. */
export interface StepRow {
  number: number;
  name: string;
  start_ns: number;
  duration_ns: number;
  parts_ns: number[];
  host_start_ns: number; // When the host began it.
  host_end_ns: number;
}

/** One cause of device idle time, per step. */
export interface IdleCause {
  id: string;
  label: string;
  help: string;
  idle_ns: number;
  share: number; // Of the step.
  gap_count: number; // How many stretches of idle time it has in the window.
  start_ns: number | null; // Of the longest of them.
  end_ns: number | null;
  event: number | null; // What ended it on the device, by its place in the file.
}

/** One line of a short list; `view` and `search` lead to the whole story. */
export interface TopRow {
  name: string;
  detail: string;
  value: number;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  share: number | null;
  view: string;
  search: string;
  full_name: string; // Where `name` is short.
  kind: string; // Of an operator.
  start_ns: number | null; // Of what has a place in time.
  end_ns: number | null;
  event: number | null; // What ended a gap, by its place in the file.
}

/** All about a rule, as `stepscope explain` prints it. */
export interface RulePage {
  schema: number;
  rule: string; // The rule's id, also where it was asked for by an alias.
  title: string;
  text: string; // Markdown.
}

/** Every public table. */
export interface Tables { schema: number; tables: TableInfo[]; }

/** One public table. */
export interface TableInfo {
  name: string;
  title: string;
  meaning: string; // What a row is, and what the table tells.
  is_of_run: boolean; // True where it is of all recordings of a run together.
  columns: string[];
}

/** The tracks of a recording, in the order in which they are shown. */
export interface Timeline {
  schema: number;
  start_ns: number;
  end_ns: number; // When the last slice ends, from the trace's first event.
  names_count: number;
  tracks: TimelineTrack[];
  categories: TimelineCategory[]; // A slice's code is the place here.
  steps: TimelineStep[];
  note: string; // What the tracks do not show, and why.
}

/** One track, or the header above some. */
export interface TimelineTrack {
  id: number;
  parent: number | null; // The header that it is shown under.
  kind: 'annotations' | 'counter' | 'group' | 'idle' | 'other' | 'steps' | 'stream' | 'thread';
  label: string;
  detail: string;
  row_count: number; // Rows of slices.
  event_count: number | null; // Null where nobody has counted.
  busy_ns: number | null; // For how long anything of it ran.
  order: number; // Its place among the tracks.
  unit: string; // Of a counter's values.
  is_open: boolean; // Whether it is shown in full at first.
}

/** What slices of a code are. */
export interface TimelineCategory { id: string; label: string; }

/** A step, as the host marked it. */
export interface TimelineStep { number: number; start_ns: number; end_ns: number; }

/** Names of slices; a slice's code is the place here. */
export interface TimelineNames { schema: number; names: string[]; }

/** A counter in equal times; null where no value is known. */
export interface TimelineCounter {
  schema: number;
  track: number;
  level: number;
  tile: number;
  start_ns: number;
  bucket_ns: number;
  unit: string;
  least: number | null; // Over the whole recording.
  most: number | null;
  min: (number | null)[]; // The least value in each bucket, with the one that held when it began.
  max: (number | null)[];
  last: (number | null)[]; // The value when the bucket ends.
}

/** All that is known of one slice. */
export interface TimelineSlice {
  schema: number;
  event: number;
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number; // As recorded.
  duration_ns: number; // As recorded, or where that cannot be drawn as the tracks show it.
  self_ns: number | null; // Without the slices within it.
  device_ns: number | null; // Sum of what it launched on devices, with what it called.
  arguments: SliceArgument[];
  stack: SliceFrame[]; // The Python functions that led to it, the outermost first.
  stack_of: string; // Whose stack it is.
  parents: SliceParent[]; // What contains it, the outermost first.
  child_count: number;
  module: string | null;
  operator: SliceParent | null; // The innermost operator around it, or around its launch.
  step: number | null; // The number of the step in which it, or its launch, began.
  links: SliceLink[];
  link_counts: Record<string, number>; // How many links of each kind there are.
}

/** What the trace says of an event beside its time. */
export interface SliceArgument {
  key: string;
  value: string | number;
  is_cut: boolean; // Whether the value is longer than what is shown.
}

/** A Python function of a stack. */
export interface SliceFrame {
  function: string;
  file: string; // Empty of what is built in.
  line: number;
}

/** A slice that contains another. */
export interface SliceParent { event: number; name: string; category: string; }

/** Another slice that one has to do with. */
export interface SliceLink {
  kind: string;
  event: number;
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number;
  duration_ns: number;
}

/** Slices that were found, by time. */
export interface TimelineHits {
  schema: number;
  total: number;
  hits: TimelineHit[]; // Some of them, next to each other.
  first: number; // How many come before those.
  density: number[]; // Of a search.
}

/** A slice, and where it is. */
export interface TimelineHit {
  event: number | null; // Its place in the file.
  name: string;
  category: string;
  track: number;
  row: number;
  start_ns: number;
  duration_ns: number;
}

/** A slice beside another, or nearest to a moment. */
export interface TimelineNeighbour {
  schema: number;
  hit: TimelineHit | null; // Null where there is none.
}

/** What runs in a part of the timeline. */
export interface TimelineArea {
  schema: number;
  start_ns: number;
  end_ns: number;
  table: Table; // By name.
  tracks: AreaTrack[];
}

/** One track's time in an area. */
export interface AreaTrack { track: number; busy_ns: number; idle_ns: number; slice_count: number; }

/** Figures from span to span, or from run to run. */
export interface Trends {
  schema: number;
  figures: TrendFigure[];
  points: TrendPoint[]; // Of the run that was recorded first before others, as far as the files' names tell.
  waiting_count: number; // Recordings that are still to be read.
  unreadable_count: number; // Recordings that cannot be read, and are left out.
}

/** A figure that is followed. */
export interface TrendFigure {
  name: string;
  unit: 'bytes' | 'bytes/s' | 'code' | 'count' | 'ns' | 'share' | 'text';
  meaning: string;
  label: string;
}

/** A run's figures at one span: means over its workers; of `memory_peak_bytes` the largest. */
export interface TrendPoint {
  run: string; // The run's id.
  run_name: string;
  span: number; // Which of the worker's recordings, from 1.
  traces: string[]; // The recordings that it is the mean of, a worker each.
  figures: Record<string, number | null>; // By name.
  least_step_ns: number | null; // The mean step of the quickest worker.
  most_step_ns: number | null; // The mean step of the slowest worker.
  step_count: number; // Steps that were recorded whole, of all its workers.
  finding_count: number; // Pieces of advice a recording, symptoms and notes included.
  severity_counts: Record<string, number>; // Of them, those of each severity.
  recoverable_shares: Record<string, number>; // By rule.
}
