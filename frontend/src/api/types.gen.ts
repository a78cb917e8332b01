/* Generated from plugin/stepscope/api by `npm run types`; do not edit. */

/**
 * Every answer of the API, by its type.
 */
export interface Answers {
Runs?: Runs
RunState?: RunState
Worker?: Worker
Span?: Span
Progress?: Progress
Problem?: Problem
RunReport?: RunReport
WorkerReport?: WorkerReport
StepReport?: StepReport
DeviceReport?: DeviceReport
HealthItem?: HealthItem
HealthExample?: HealthExample
RecordNext?: RecordNext
BudgetLine?: BudgetLine
Standing?: Standing
RunSetting?: RunSetting
Outcome?: Outcome
ClaimReport?: ClaimReport
Evidence?: Evidence
Link?: Link
EventReference?: EventReference
Fix?: Fix
EvidenceTable?: EvidenceTable
EvidenceColumn?: EvidenceColumn
EvidenceRow?: EvidenceRow
SourceLine?: SourceLine
MergedOutcome?: MergedOutcome
RelatedFinding?: RelatedFinding
JobSaving?: JobSaving
JobReport?: JobReport
RepresentativeRecording?: RepresentativeRecording
ApiError?: ApiError
ComparisonAnswer?: ComparisonAnswer
ComparedSide?: ComparedSide
Comparison?: Comparison
Side?: Side
Change?: Change
Part?: Part
Row?: Row
AdviceChange?: AdviceChange
Saving?: Saving
SettingChange?: SettingChange
ModuleRow?: ModuleRow
Distributed?: Distributed
RankInfo?: RankInfo
RunClocks?: RunClocks
Straggler?: Straggler
Representative?: Representative
OutlierRank?: OutlierRank
GroupInfo?: GroupInfo
RankSteps?: RankSteps
RankBreakdown?: RankBreakdown
Category?: Category
RankRow?: RankRow
Collectives?: Collectives
Table?: Table
Column?: Column
CollectiveRef?: CollectiveRef
CollectiveRanks?: CollectiveRanks
CollectiveMember?: CollectiveMember
Tools?: Tools
FlameGraph?: FlameGraph
FlameKind?: FlameKind
FlameFunctions?: FlameFunctions
KernelDetails?: KernelDetails
TimeDistribution?: TimeDistribution
StepUse?: StepUse
KernelLaunch?: KernelLaunch
StreamUse?: StreamUse
RelatedOperator?: RelatedOperator
StackUse?: StackUse
StackFrame?: StackFrame
CallInstance?: CallInstance
MemoryOverTime?: MemoryOverTime
MemoryDeviceFacts?: MemoryDeviceFacts
MemoryLevels?: MemoryLevels
MemoryPoint?: MemoryPoint
MemoryOom?: MemoryOom
MemoryStep?: MemoryStep
MemoryHolders?: MemoryHolders
MemoryAllocations?: MemoryAllocations
MemoryGrowth?: MemoryGrowth
MemoryFragmentation?: MemoryFragmentation
MemoryFiles?: MemoryFiles
MemoryFile?: MemoryFile
MemoryFileReport?: MemoryFileReport
MemoryFileCurve?: MemoryFileCurve
MemoryLine?: MemoryLine
Modules?: Modules
ModuleWork?: ModuleWork
Names?: Names
NamesOfKind?: NamesOfKind
OperatorDetails?: OperatorDetails
ShapeUse?: ShapeUse
LaunchedWork?: LaunchedWork
Overview?: Overview
StepRow?: StepRow
IdleCause?: IdleCause
TopRow?: TopRow
RulePage?: RulePage
Tables?: Tables
TableInfo?: TableInfo
Timeline?: Timeline
TimelineTrack?: TimelineTrack
TimelineCategory?: TimelineCategory
TimelineStep?: TimelineStep
TimelineNames?: TimelineNames
TimelineCounter?: TimelineCounter
TimelineSlice?: TimelineSlice
SliceArgument?: SliceArgument
SliceFrame?: SliceFrame
SliceParent?: SliceParent
SliceLink?: SliceLink
TimelineHits?: TimelineHits
TimelineHit?: TimelineHit
TimelineNeighbour?: TimelineNeighbour
TimelineArea?: TimelineArea
AreaTrack?: AreaTrack
Trends?: Trends
TrendFigure?: TrendFigure
TrendPoint?: TrendPoint
}
/**
 * Everything found under the log directory.
 */
export interface Runs {
schema: number
logdir: string
/**
 * True until the first look through the folder is over.
 */
scanning: boolean
/**
 * True while any file is queued or being read.
 */
loading: boolean
runs: RunState[]
problems: Problem[]
/**
 * Which file names count as traces.
 */
looked_for: string
/**
 * Files that the look through the folder has seen so far, traces or not.
 */
looked_at_count: number
/**
 * True where the user ended the look: there may be more.
 */
is_cancelled: boolean
}
/**
 * A run: a folder with traces.
 */
export interface RunState {
id: string
name: string
synthetic: boolean
/**
 * `ready` as soon as one of its files is, and none is still being read.
 */
state: ("cancelled" | "queued" | "reading" | "ready" | "unreadable")
workers: Worker[]
}
/**
 * One process of a run.
 */
export interface Worker {
name: string
rank: (number | null)
spans: Span[]
/**
 * The machine that it ran on; None until a file of it was read, or where that does not tell.
 */
host: (string | null)
}
/**
 * One recording of a worker: one trace file.
 */
export interface Span {
trace: string
/**
 * `1`, `2`, … in order of recording.
 */
label: string
/**
 * The file's name, for people; never used to ask for it.
 */
file: string
state: ("cancelled" | "queued" | "reading" | "ready" | "unreadable")
progress: (Progress | null)
problem: (Problem | null)
/**
 * Of a file that is queued: 1 is read next.
 */
place: (number | null)
/**
 * How long the file is, as it lies on disk.
 */
file_bytes: number
/**
 * None until it was read.
 */
events: (number | null)
/**
 * The worst that was found damaged in it; None where nothing was, or it was not read yet.
 */
damage: (("critical" | "info" | "warning") | null)
/**
 * True of a queued file that somebody still writes: it is read when it has settled.
 */
is_growing: boolean
}
/**
 * How far the reading of one file has come.
 */
export interface Progress {
/**
 * `waiting` is for memory that other files take, or for a worker of a cluster.
 */
phase: ("advising" | "analysing" | "reading" | "waiting")
/**
 * Of the file as it lies on disk.
 */
bytes_done: number
bytes_total: number
events: number
elapsed_ns: number
/**
 * Until it is ready, by what was measured so far; null until that tells anything.
 */
left_ns: (number | null)
}
/**
 * A file or folder that could not be read, and what to do about it.
 */
export interface Problem {
path: string
message: string
remedy: string
}
/**
 * A run: its workers' recordings and what every rule said of each, and of all of them.
 */
export interface RunReport {
name: string
workers: WorkerReport[]
/**
 * Of each recording, by its `trace`; those of rules over the run have an empty one.
 */
outcomes: Outcome[]
/**
 * Findings of all recordings, each once, the most serious first.
 */
merged: MergedOutcome[]
/**
 * One plain sentence for the run; of a single recording, its own.
 */
verdict: string
/**
 * None of a run without recordings.
 */
job: (JobReport | null)
/**
 * The few recordings to look at, of several ranks; empty where ranks cannot be compared.
 */
representatives: RepresentativeRecording[]
}
/**
 * One worker's recording: one trace file.
 */
export interface WorkerReport {
/**
 * Opaque id of the recording, as the API names it.
 */
trace: string
name: string
span: string
rank: (number | null)
events: number
dialect: string
/**
 * True where the trace was written by stepscope's synthesiser, not recorded.
 */
synthetic: boolean
/**
 * One plain sentence: the step, how busy the device is, what costs most.
 */
verdict: string
step: StepReport
devices: DeviceReport[]
/**
 * Idle nanoseconds of the busiest device by cause, per step; sums to its idle time.
 */
idle_ns: {
[k: string]: number
}
health: HealthItem[]
/**
 * How long the JSON document is, as far as it was read; 0 where that is not known.
 */
inflated_bytes: number
/**
 * Which of stepscope's readers read it.
 */
reader: string
/**
 * What wrote the file, by what stands in it.
 */
producer: string
/**
 * The same for two recordings with the same events only.
 */
fingerprint: string
/**
 * What was not recorded; empty where nothing is missing.
 */
record_next: RecordNext[]
/**
 * Python that records all of it, and what was recorded already, ready to be pasted.
 */
profile_call: string
/**
 * Where the time goes, and how much of each part could be won back.
 */
budget: BudgetLine[]
/**
 * None where no rules were asked.
 */
standing: (Standing | null)
/**
 * The name of its file, without the folder.
 */
file: string
/**
 * What the trace handler recorded of the run; empty where it did not write the file.
 */
settings: RunSetting[]
/**
 * The machine's name; empty where it was not recorded.
 */
host: string
/**
 * Parts of the job that it belongs to: `pipeline stage 2 of 4`, `tensor-parallel group 3 of 8`;
 * empty where nothing tells.
 */
groups: string[]
/**
 * Ranks of the job; None: not recorded.
 */
world_size: (number | null)
/**
 * Whether a backward pass or an optimizer's step was recorded; None where no rules were asked.
 *     
 */
is_training: (boolean | null)
/**
 * How long it waits a step for other ranks in collectives while nothing computes; None: that
 * cannot be told.
 */
wait_ns: (number | null)
}
/**
 * The mean step. Without steps, `count` is 0 and the figures are of the whole window.
 */
export interface StepReport {
count: number
mean_ns: number
standard_deviation_ns: number
/**
 * Category to nanoseconds of the mean step; the values sum to `mean_ns`.
 */
breakdown_ns: {
[k: string]: number
}
}
/**
 * How one device was used within the window.
 */
export interface DeviceReport {
id: number
name: string
/**
 * Union of kernels, copies and memory sets over the window.
 */
busy_share: number
kernel_busy_share: number
/**
 * Duration-weighted min(1, blocks per SM) over the window; None where not recorded.
 */
sm_efficiency_share: (number | null)
/**
 * Duration-weighted estimated achieved occupancy of kernels that report one.
 */
occupancy_share: (number | null)
/**
 * Share of kernel time in kernels that use matrix units; None where they cannot be told.
 */
tensor_core_share: (number | null)
/**
 * Most that torch had taken from it at once: reserved, or where not recorded allocated.
 */
memory_peak_bytes: (number | null)
memory_capacity_bytes: (number | null)
/**
 * For each figure that is None, why, and what would record it; for one that damage to the
 * recording makes unreliable, what that is.
 */
notes: {
[k: string]: string
}
}
/**
 * Something about the file itself that a reader should know.
 */
export interface HealthItem {
kind: string
severity: ("critical" | "info" | "warning")
count: number
message: string
remedy: string
/**
 * `damage`: something is wrong or lost; `gap`: it was never recorded; `note`: good to know.
 */
nature: ("damage" | "gap" | "note")
/**
 * How many there are of what `count` counts, damaged or not; None where that says nothing.
 */
of_count: (number | null)
/**
 * What was done about it, in words to follow `message`; empty where nothing was.
 */
action: string
/**
 * Bytes of the document that gave nothing.
 */
lost_bytes: number
examples: HealthExample[]
/**
 * What becomes of everything in `affects`: low confidence, or no answer at all.
 */
effect: ("low" | "none" | "withheld")
/**
 * Ids of rules, and names of what else is shown, that rest on what is damaged.
 */
affects: string[]
}
/**
 * One place in the file where a thing was found.
 */
export interface HealthExample {
/**
 * From the beginning of the JSON document, inflated where the file is compressed.
 */
offset_bytes: number
/**
 * What stands there, or which event that is and what is odd about it.
 */
text: string
/**
 * When the event begins, from the trace's first event; None where it has no time.
 */
start_ns: (number | null)
}
/**
 * Something that was not recorded, and the line of code that records it next time.
 */
export interface RecordNext {
flag: string
/**
 * What it would show: a sentence.
 */
why: string
/**
 * One line, as it stands in `WorkerReport.profile_call`.
 */
code: string
}
/**
 * One part of the mean step (without steps: of the window); the parts sum to the whole.
 */
export interface BudgetLine {
category: string
label: string
time_ns: number
share: number
recoverable_low_ns: number
/**
 * What all findings together could win back of it, each nanosecond counted once.
 */
recoverable_high_ns: number
/**
 * The rules whose findings that is, the one that wins most first.
 */
rules: string[]
}
/**
 * Where a recording stands when all rules have spoken, with the numbers that say so.
 */
export interface Standing {
state: ("cannot-tell" | "found" | "healthy" | "not-applicable")
message: string
}
/**
 * One setting of the run, as the trace handler recorded it.
 */
export interface RunSetting {
/**
 * What it is a setting of, as it is shown: `DataLoader`, `Device × 8`.
 */
group: string
/**
 * The same as it was recorded: `dataloaders[0]`.
 */
subject: string
name: string
label: string
/**
 * `on` or `off` of what is switched.
 */
value: (number | string)
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
}
/**
 * What one rule said of one worker's recording.
 */
export interface Outcome {
rule: string
title: string
category: string
status: ("cannot-tell" | "failed" | "found" | "not-applicable" | "passed" | "rejected" | "suppressed")
worker: string
span: string
/**
 * Opaque id of the recording: `WorkerReport.trace` of the one that this is about.
 */
trace: string
severity: (("critical" | "info" | "warning") | null)
confidence: (("high" | "low" | "medium") | null)
claim: (ClaimReport | null)
/**
 * What was measured, in one or two plain sentences with this trace's numbers.
 */
message: string
/**
 * Why the state that the rule names costs time.
 */
why: string
evidence: Evidence[]
events: EventReference[]
fix: (Fix | null)
/**
 * Why the rule does not apply, failed, or was suppressed.
 */
reason: (string | null)
/**
 * The line of code that would record what the rule lacks.
 */
remedy: (string | null)
links: string[]
/**
 * What is wrong with the recording, so that this answer is not to be relied upon.
 */
doubts: string[]
tables: EvidenceTable[]
/**
 * Lines of the user's program that it is about, the costliest first; empty without stacks.
 */
locations: SourceLine[]
effort: (("day" | "flag" | "hour") | null)
risk: (("behaviour" | "memory" | "none" | "numerics") | null)
life_cycle: ("deprecated" | "preview" | "stable")
/**
 * True where it names no cause, and therefore claims nothing.
 */
is_symptom: boolean
/**
 * The same in every recording of the same code: of rule, place and kernels, not of numbers.
 */
fingerprint: string
/**
 * The package that the rule comes from; empty for stepscope's own.
 */
package: string
/**
 * What costs the time, as a verdict names it: `the DataLoader`; empty where nothing does.
 */
culprit: string
/**
 * Who put it aside; `reason` says why.
 */
suppressed_by: ("" | "baseline" | "configuration" | "recording")
/**
 * How it stands to the baseline that was given; empty where none was.
 */
baseline: ("" | "new" | "unchanged" | "worse")
/**
 * Of a rule over the run: ids of the recordings that are the cause, such as a late rank's.
 */
blamed: string[]
}
/**
 * What a finding could save, per step where there are steps, else over the window.
 * 
 *     `gross_ns` is the finding alone, at most; `net_*` what is left once every nanosecond that
 *     another finding also claims has been given to one of them.
 */
export interface ClaimReport {
gross_ns: number
net_low_ns: number
net_high_ns: number
/**
 * `net_high_ns` as a share of the step (or window).
 */
net_share: number
/**
 * One sentence that says how it was reckoned.
 */
method: string
/**
 * Numbers of the steps that hold some of it, as ranges: `3-9, 12`.
 */
steps: string
}
/**
 * One measured fact behind a finding: a label, a value with its unit, and where to see it.
 */
export interface Evidence {
label: string
value: (number | string)
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
link: (Link | null)
}
/**
 * A place in the page that shows what a piece of evidence is about.
 */
export interface Link {
view: ("advice" | "compare" | "distributed" | "flame" | "health" | "kernels" | "memory" | "modules" | "operators" | "overview" | "runs" | "timeline" | "trends")
/**
 * Text for the view's search box.
 */
search?: (string | null)
/**
 * The grouping that the view's table should use.
 */
group?: (string | null)
/**
 * The number in `ProfilerStep#N`.
 */
step?: (number | null)
start_ns?: (number | null)
end_ns?: (number | null)
/**
 * Opaque id of the recording, where it is another than the outcome's.
 */
trace?: (string | null)
/**
 * A line of the user's program: `train.py(12): forward`.
 */
source?: (string | null)
rank?: (number | null)
}
/**
 * One event of the trace that shows the problem.
 */
export interface EventReference {
name: string
/**
 * Where it ran: `thread 4711`, `GPU 0 stream 7`.
 */
track: string
/**
 * From the trace's first event.
 */
start_ns: number
duration_ns: number
/**
 * What matters about it here: bytes and direction, the source line, the owning operator.
 */
detail: string
/**
 * Its place among the events of the file, which names it in every table; None: unknown.
 */
event: (number | null)
}
/**
 * What to change, how to see that it worked, and what it may cost.
 */
export interface Fix {
summary: string
code: string
language: string
verify: string
caveats: string[]
}
/**
 * What a finding is made of: its kernels, operators, source lines, ranks; the worst first.
 */
export interface EvidenceTable {
label: string
columns: EvidenceColumn[]
rows: EvidenceRow[]
}
/**
 * A column of a table of evidence, and how its cells are to be read.
 */
export interface EvidenceColumn {
label: string
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
}
/**
 * A row of a table of evidence; a cell is None where its value is not known.
 */
export interface EvidenceRow {
cells: (number | string | null)[]
link: (Link | null)
}
/**
 * A line of the user's program that a finding is about.
 */
export interface SourceLine {
path: string
line: number
function: string
}
/**
 * What one rule found in several recordings of a run, once.
 */
export interface MergedOutcome {
outcome: Outcome1
/**
 * Ids of the recordings in which it was found; empty for a rule about the whole run.
 */
traces: string[]
/**
 * How many recordings the rule could judge.
 */
of_count: number
/**
 * In which of them, for people: `ranks 0-3 and 7 of 8`, `all 4 recordings`.
 */
where: string
net_low_ns: (number | null)
net_median_ns: (number | null)
/**
 * Least, median and most of what could be saved a step in one of them; None: nothing claimed.
 * Ranks wait for each other: these are not to be added.
 */
net_high_ns: (number | null)
/**
 * The ranks in which it was found, as ranges: `0-3, 7`; empty where a recording has none.
 */
ranks: string
/**
 * Machines all of whose recorded ranks have it, where no other rank has it, nor all.
 */
hosts: string[]
/**
 * The part of the job all of whose recorded ranks have it, where no other rank has it.
 */
group: string
/**
 * Numbers of the steps that hold some of it in any recording, as ranges; empty where that
 * cannot be told.
 */
steps: string
/**
 * In which steps, for people: `in every step`, `in steps 3 and 7 of 10`; empty where that
 * cannot be told.
 */
when: string
/**
 * What the recordings that it blames say of themselves, differently from their peers; the most
 * telling first.
 */
related: RelatedFinding[]
/**
 * How many such findings there are besides.
 */
related_more: number
/**
 * What the job could save if this alone were mended; None where it claims nothing, or where
 * that cannot be told.
 */
job_saving: (JobSaving | null)
}
/**
 * What one rule said of one worker's recording.
 */
export interface Outcome1 {
rule: string
title: string
category: string
status: ("cannot-tell" | "failed" | "found" | "not-applicable" | "passed" | "rejected" | "suppressed")
worker: string
span: string
/**
 * Opaque id of the recording: `WorkerReport.trace` of the one that this is about.
 */
trace: string
severity: (("critical" | "info" | "warning") | null)
confidence: (("high" | "low" | "medium") | null)
claim: (ClaimReport | null)
/**
 * What was measured, in one or two plain sentences with this trace's numbers.
 */
message: string
/**
 * Why the state that the rule names costs time.
 */
why: string
evidence: Evidence[]
events: EventReference[]
fix: (Fix | null)
/**
 * Why the rule does not apply, failed, or was suppressed.
 */
reason: (string | null)
/**
 * The line of code that would record what the rule lacks.
 */
remedy: (string | null)
links: string[]
/**
 * What is wrong with the recording, so that this answer is not to be relied upon.
 */
doubts: string[]
tables: EvidenceTable[]
/**
 * Lines of the user's program that it is about, the costliest first; empty without stacks.
 */
locations: SourceLine[]
effort: (("day" | "flag" | "hour") | null)
risk: (("behaviour" | "memory" | "none" | "numerics") | null)
life_cycle: ("deprecated" | "preview" | "stable")
/**
 * True where it names no cause, and therefore claims nothing.
 */
is_symptom: boolean
/**
 * The same in every recording of the same code: of rule, place and kernels, not of numbers.
 */
fingerprint: string
/**
 * The package that the rule comes from; empty for stepscope's own.
 */
package: string
/**
 * What costs the time, as a verdict names it: `the DataLoader`; empty where nothing does.
 */
culprit: string
/**
 * Who put it aside; `reason` says why.
 */
suppressed_by: ("" | "baseline" | "configuration" | "recording")
/**
 * How it stands to the baseline that was given; empty where none was.
 */
baseline: ("" | "new" | "unchanged" | "worse")
/**
 * Of a rule over the run: ids of the recordings that are the cause, such as a late rank's.
 */
blamed: string[]
}
/**
 * What recordings that are blamed have to say of themselves, and their peers have not.
 */
export interface RelatedFinding {
rule: string
title: string
/**
 * Id of the recording in which it costs most beyond its peers.
 */
trace: string
rank: (number | null)
/**
 * The worker's.
 */
name: string
/**
 * Whether the rule found nothing in any of its peers.
 */
is_only_there: boolean
/**
 * What it could save there a step at most; None: it claims nothing.
 */
net_high_ns: (number | null)
/**
 * The same in the median peer, 0 where it was not found.
 */
peers_net_high_ns: (number | null)
/**
 * In which of the recordings that are blamed, for people: `ranks 256-511`.
 */
where: string
/**
 * How many recordings these are.
 */
trace_count: number
}
/**
 * What the whole job could save, at least and at most: estimated in `advice/job_savings.py`.
 */
export interface JobSaving {
low_share: number
/**
 * Of the job's step, and so of each device's time.
 */
high_share: number
low_gpu_hours: (number | null)
/**
 * In a day: that share of the job's devices for 24 hours; None where these are not known.
 */
high_gpu_hours: (number | null)
low_money: (number | null)
/**
 * In a day, by the price that was given, in its currency; None where none was.
 */
high_money: (number | null)
}
/**
 * The job that a run is of: its devices, and what all findings together could save in a day.
 */
export interface JobReport {
/**
 * Its mean step: the longest of its recordings'.
 */
step_ns: number
/**
 * None: that is not known.
 */
gpu_count: (number | null)
/**
 * What tells their number: words to follow it.
 */
gpu_source: string
gpu_hour_price: (number | null)
/**
 * Whether the user gave a number of devices or a price.
 */
is_asked: boolean
/**
 * Of all findings together, which is not the sum of each one's. None where it is withheld.
 */
total: (JobSaving | null)
/**
 * Why nothing is told of the job: a sentence; empty where something is.
 */
withheld: string
/**
 * How it was reckoned, and what that takes for granted.
 */
method: string
}
/**
 * One of the few recordings of a run to look at.
 */
export interface RepresentativeRecording {
/**
 * By its own work, without waiting for others; `odd`: unlike the others in another figure.
 */
kind: ("fastest" | "median" | "odd" | "slowest")
/**
 * Id of the recording.
 */
trace: string
rank: (number | null)
/**
 * The worker's.
 */
name: string
/**
 * Why this one: sentences.
 */
reason: string
}
/**
 * Why a request has no answer.
 */
export interface ApiError {
code: string
message: string
hint: string
}
/**
 * What changed between two sides.
 */
export interface ComparisonAnswer {
schema: number
before: ComparedSide
after: ComparedSide
/**
 * True where both sides are the same recordings: then nothing can have changed.
 */
is_same: boolean
/**
 * True where the sides ran on different devices: times then tell of these as well.
 */
has_other_devices: boolean
comparison: Comparison
/**
 * Empty where one of the sides has no modules recorded.
 */
modules: ModuleRow[]
/**
 * How changes are told from noise.
 */
test: string
}
/**
 * The recordings of one side, and those that are not in it yet.
 */
export interface ComparedSide {
/**
 * Recordings of it that are still to be read: with them, the answer may come out otherwise.
 */
waiting_count: number
/**
 * Of its recordings that cannot be read, and are left out.
 */
problems: Problem[]
/**
 * Each step's time, in order: a step of several ranks is their mean, and of a very long
 * recording neighbours are one; empty without steps.
 */
step_ns: number[]
/**
 * The names of its devices, or their kind where names were not recorded.
 */
devices: string
}
/**
 * Two sides, and what is different.
 */
export interface Comparison {
before: Side
after: Side
step: Change
/**
 * From the mean step before to the one after: the parts' changes sum to the step's.
 */
waterfall: Part[]
/**
 * The busiest device's idle time a step by cause; not tested.
 */
idle: Part[]
/**
 * Busy share, peak memory and the like; not tested.
 */
figures: Part[]
/**
 * What changed most first; those that take less than a thousandth of a step are left out,
 * unless they were added or are gone.
 */
operators: Row[]
/**
 * Kernels, copies and memory sets, likewise.
 */
device_work: Row[]
advice: AdviceChange[]
/**
 * First of all recordings together, then of each that both sides have.
 */
savings: Saving[]
/**
 * What else is different between the sides, or speaks against comparing them.
 */
warnings: string[]
/**
 * Recorded settings that differ; empty where one side has none recorded.
 */
settings: SettingChange[]
}
/**
 * One of the two that are compared.
 */
export interface Side {
name: string
recording_count: number
worker_count: number
/**
 * Steps that were sampled; ranks of one step count once.
 */
step_count: number
mean_step_ns: number
median_step_ns: number
standard_deviation_ns: number
batch_size: (number | null)
/**
 * Mean step over the batch's samples; None where no shape tells the batch.
 */
batch_ns: (number | null)
}
/**
 * A figure before and after.
 */
export interface Change {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A part of the mean step, or of a device's idle time in it.
 */
export interface Part {
id: string
label: string
meaning: string
change: Change
}
/**
 * What one operator, annotation, kernel, copy or memory set cost a step on each side.
 */
export interface Row {
kind: ("annotation" | "copy" | "kernel" | "memory-set" | "operator")
name: string
status: ("added" | "faster" | "gone" | "other-calls" | "same" | "slower" | "untested")
matched_by: ("" | "name" | "name and module" | "name and operator" | "name without its hash" | "name, shape and module")
/**
 * The innermost `nn.Module` around it, with `with_stack=True` or `with_modules=True`.
 */
module: string
/**
 * Of work on a device: the innermost operator that launched it.
 */
operator: string
shapes_before: string[]
shapes_after: string[]
calls: Change
device: Change1
host: Change2
device_total: Change3
host_total: Change4
}
/**
 * A figure before and after.
 */
export interface Change1 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A figure before and after.
 */
export interface Change2 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A figure before and after.
 */
export interface Change3 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A figure before and after.
 */
export interface Change4 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * What became of a piece of advice; savings are a step's, means over a side's recordings.
 */
export interface AdviceChange {
rule: string
title: string
/**
 * What it is about, where a rule finds several things; empty where there is one.
 */
subject: string
status: ("better" | "fixed" | "new" | "not-checked" | "still" | "worse")
severity_before: (("critical" | "info" | "warning") | null)
severity_after: (("critical" | "info" | "warning") | null)
low_before_ns: number
high_before_ns: number
low_after_ns: number
high_after_ns: number
/**
 * Why it was not checked.
 */
reason: string
}
/**
 * What the advice that was followed promised a step, and what became of the step.
 */
export interface Saving {
/**
 * Empty where it is of all recordings together.
 */
worker: string
span: string
/**
 * The advice that is fixed.
 */
rules: string[]
predicted_low_ns: number
predicted_high_ns: number
/**
 * Mean step before less after.
 */
realised_mean_ns: number
/**
 * Median iteration of the host's loop before less after, which one slow step does not move.
 */
realised_median_ns: number
}
/**
 * A setting of the run, as the trace handler recorded it, that differs between the sides.
 */
export interface SettingChange {
/**
 * As it was recorded: `dataloaders[0].worker_count`.
 */
name: string
/**
 * As it is shown: `DataLoader, Workers`.
 */
label: string
before: string
after: string
}
/**
 * What the operators and annotations of one `nn.Module` cost a step on each side.
 */
export interface ModuleRow {
/**
 * As the profiler numbers it: `Linear_0`; empty for what ran in no module.
 */
name: string
status: ("added" | "faster" | "gone" | "other-calls" | "same" | "slower" | "untested")
calls: Change5
device: Change6
host: Change7
}
/**
 * A figure before and after.
 */
export interface Change5 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A figure before and after.
 */
export interface Change6 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * A figure before and after.
 */
export interface Change7 {
before: number
after: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Of the difference; None where a side has one step.
 */
standard_error: (number | null)
/**
 * The chance that any figure of its table would change so if nothing had changed.
 */
p: (number | null)
verdict: ("less" | "more" | "same" | "untested")
}
/**
 * What a run of several ranks is, and how much of it was recorded.
 */
export interface Distributed {
schema: number
span: string
/**
 * Ranks of the job; null where neither header nor groups tell.
 */
world_size: (number | null)
/**
 * By rank; those of which nothing tells a rank come last.
 */
ranks: RankInfo[]
missing_count: number
/**
 * Ranks of the job without a recording: `3, 8-15`.
 */
missing_ranks: string
/**
 * Files that are still to be read: with them, answers may come out otherwise.
 */
waiting_count: number
problems: Problem[]
/**
 * Machines that the recordings name.
 */
host_count: number
has_device: boolean
group_count: number
/**
 * Numbers of the steps that any rank recorded whole; empty where none is marked.
 */
steps: number[]
/**
 * Over steps and ranks.
 */
mean_step_ns: number
/**
 * Collectives of the run, each counted once.
 */
collective_count: number
/**
 * Of those, how many were found on more than one rank.
 */
matched_count: number
clocks: RunClocks
/**
 * Stragglers first, then whoever came latest; at most twenty beside the stragglers, of which
 * no more than a hundred are told.
 */
stragglers: Straggler[]
straggler_count: number
/**
 * The few ranks to look at; none where fewer than three can be compared.
 */
representatives: Representative[]
/**
 * The farthest first; at most a hundred.
 */
outliers: OutlierRank[]
outlier_count: number
/**
 * Those in which most time goes first; at most 512.
 */
groups: GroupInfo[]
/**
 * Of the missing ranks those whose file is there and cannot be read: `3, 8-15`.
 */
unreadable_ranks: string
}
/**
 * One recording of the run; null where nothing tells.
 */
export interface RankInfo {
rank: (number | null)
/**
 * `header` (distributedInfo.rank), `file name`, `content` or `device`.
 */
rank_source: (string | null)
rank_confidence: (string | null)
worker: string
host: (string | null)
device_name: (string | null)
/**
 * Steps recorded whole; 0 where none is marked.
 */
step_count: number
}
/**
 * How the ranks' clocks were brought together.
 */
export interface RunClocks {
/**
 * The worker with whose clock the others are aligned; empty where none is.
 */
reference: string
/**
 * Recordings that share its machine, and so its clock; itself among them.
 */
machine_count: number
/**
 * Recordings aligned over collectives that no rank can leave before all have come.
 */
collective_count: number
/**
 * Recordings that could not be aligned with it.
 */
lost_count: number
/**
 * No clock is further off than this; null where nothing was aligned.
 */
error_ns: (number | null)
/**
 * Ranks mostly leave a collective within this of each other.
 */
likely_error_ns: (number | null)
/**
 * Recordings whose clock also runs faster or slower.
 */
drift_count: number
}
/**
 * A rank that comes late to collectives.
 */
export interface Straggler {
rank: (number | null)
worker: string
/**
 * Whether that is beyond what is usual among the ranks, and 1 % of a step or more.
 */
is_straggler: boolean
/**
 * Modified z-score over the ranks of its lateness or own work, whichever is larger; null with
 * fewer than three.
 */
score: (number | null)
/**
 * How much longer it works by itself in a step than the median rank of its pipeline stage.
 */
own_excess_ns: (number | null)
/**
 * What tells that it is a straggler; empty where it is none.
 */
found_by: ("" | "lateness" | "own work")
/**
 * Mean over the collectives of the group in which it is least late: how much later than the
 * median rank it came. Negative: earlier.
 */
lateness_ns: (number | null)
collective_count: number
/**
 * To how many of those it came last.
 */
last_count: number
/**
 * What the others together waited for it a step.
 */
wait_caused_ns: number
/**
 * What it waited for others a step.
 */
wait_ns: number
since_step: (number | null)
/**
 * Steps in which it was later than half of what it is on average.
 */
late_steps: number[]
/**
 * What takes longer on it than on the median rank: `computing`, `copies`, `data loading` or
 * `host`.
 */
cause: (string | null)
cause_ns: (number | null)
}
/**
 * One of the few ranks to look at.
 */
export interface Representative {
rank: (number | null)
worker: string
host: (string | null)
/**
 * By own work, all figures together, or for a figure that lies far from the others'.
 */
kind: ("fastest" | "median" | "odd" | "slowest")
/**
 * Which figure that is: see the table `outlier-ranks`.
 */
figure: string
value: number
/**
 * The median of the ranks that it is compared with.
 */
usual: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
/**
 * Modified z-score among them.
 */
score: number
/**
 * Its mean step.
 */
step_ns: number
reason: string
}
/**
 * A figure of a rank, or of a machine, that lies far from what is usual.
 */
export interface OutlierRank {
/**
 * Null of a machine.
 */
rank: (number | null)
/**
 * Empty of a machine.
 */
worker: string
host: (string | null)
is_host: boolean
figure: string
label: string
value: number
usual: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
score: number
/**
 * Whether it is compared with eight or more, over as many steps as most have.
 */
is_sure: boolean
reason: string
}
/**
 * A process group of the job.
 */
export interface GroupInfo {
/**
 * What torch calls it.
 */
name: string
description: string
/**
 * `DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`; empty where nothing tells.
 */
role: string
role_confidence: string
/**
 * What tells the role.
 */
why: string
size: (number | null)
/**
 * `0-7`.
 */
ranks: string
}
/**
 * One figure of every rank and step: value times `scale`; null where it was not recorded.
 */
export interface RankSteps {
schema: number
metric: string
label: string
help: string
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
is_high_bad: boolean
scale: number
/**
 * Of the rows.
 */
workers: string[]
ranks: (number | null)[]
hosts: (string | null)[]
/**
 * Of the columns.
 */
steps: number[]
values: (number | null)[][]
/**
 * Steps beyond what is sent: the first ones.
 */
left_out_count: number
waiting_count: number
/**
 * Where no value is known: why.
 */
empty: string
}
/**
 * Where a step of every rank goes: the mean one, or a chosen one.
 */
export interface RankBreakdown {
schema: number
step: (number | null)
categories: Category[]
rows: RankRow[]
/**
 * Workers that did not record the chosen step.
 */
without_step: string[]
waiting_count: number
}
/**
 * One category of step time.
 */
export interface Category {
id: string
label: string
help: string
}
/**
 * Where a step of one rank goes.
 */
export interface RankRow {
rank: (number | null)
worker: string
host: (string | null)
step_count: number
duration_ns: number
/**
 * They follow `categories`, and sum to it.
 */
parts_ns: number[]
/**
 * Hidden or not; concurrent collectives counted once.
 */
communication_ns: number
/**
 * What of that is transfer; null where no collective was found on another rank.
 */
transfer_ns: (number | null)
/**
 * What of it is waiting for other ranks.
 */
wait_ns: (number | null)
exposed_ns: number
overlap_share: (number | null)
/**
 * Its busiest device does nothing; null without a device.
 */
idle_ns: (number | null)
/**
 * Mean lateness in a collective, in the group in which it is least late.
 */
late_ns: (number | null)
}
/**
 * A table of collectives, and for each row which collective it leads to.
 */
export interface Collectives {
schema: number
table: Table
/**
 * The one itself; of a kind the one in which most time was waited.
 */
opens: CollectiveRef[]
step: (number | null)
worker: string
waiting_count: number
}
/**
 * A table by columns; `values[key]` has `row_count` entries, null where not recorded.
 */
export interface Table {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
}
/**
 * One column of a table.
 */
export interface Column {
key: string
label: string
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
help: string
/**
 * True where the column is off until asked for.
 */
hidden: boolean
}
/**
 * A collective by one of its members; more files that are read do not change that.
 */
export interface CollectiveRef {
worker: string
event: number
}
/**
 * One collective on all its ranks, on one clock.
 */
export interface CollectiveRanks {
schema: number
kind: string
group: string
description: string
role: string
sequence: (number | null)
step: (number | null)
dtype: string
message_bytes: (number | null)
/**
 * `sequence`, `order`, or empty where it was found on one rank only.
 */
matched_by: string
expected_count: (number | null)
missing_ranks: string
transfer_ns: (number | null)
/**
 * Sum over the ranks.
 */
wait_ns: number
/**
 * From the first rank's start to the last one's end.
 */
length_ns: number
algorithm_bytes_per_second: (number | null)
bus_bytes_per_second: (number | null)
aligned_by: ("clocks" | "ends")
error_ns: (number | null)
members: CollectiveMember[]
/**
 * The one before of the same kind, group, type and size.
 */
before: (CollectiveRef | null)
after: (CollectiveRef | null)
/**
 * Which of those it is, from 1.
 */
place: number
alike_count: number
}
/**
 * One rank of a collective.
 */
export interface CollectiveMember {
rank: (number | null)
worker: string
host: (string | null)
event: number
/**
 * From the first rank's start.
 */
start_ns: number
duration_ns: number
/**
 * Of that, before only the transfer was left.
 */
wait_ns: number
exposed_ns: number
is_last: boolean
}
/**
 * What is installed beside stepscope that opens recordings.
 */
export interface Tools {
schema: number
/**
 * Address of Perfetto's own page, from this server; empty where the extra is not installed.
 */
perfetto: string
/**
 * How to install it.
 */
perfetto_hint: string
}
/**
 * A flame graph by columns: nodes by depth, those of one parent together, heaviest first.
 * 
 *     Own values of a node and all below it sum to its total, and the totals of the top to `whole`,
 *     `smaller` frames included. A comparison has a second side, the baseline.
 */
export interface FlameGraph {
schema: number
/**
 * Of `own`, `total` and `whole`: ns, or bytes.
 */
unit: ("bytes" | "ns")
kinds: FlameKind[]
names: string[]
/**
 * What each of `names` is: a place in `kinds`.
 */
name_kinds: number[]
/**
 * Of each node; -1 at the top.
 */
parent: number[]
/**
 * Of each node: a place in `names`.
 */
name: number[]
/**
 * Of each node without those below it, in `unit`.
 */
own: number[]
/**
 * Of each node with all below it, in `unit`.
 */
total: number[]
/**
 * How often each was called; of memory, how many allocations it made itself.
 */
calls: number[]
/**
 * How many frames a node of the kind `smaller` stands for; 0 for all others.
 */
merged_count: number[]
/**
 * The sum of all, in `unit`.
 */
whole: number
/**
 * How many steps that is of; 0: it is not known, or of no steps.
 */
steps: number
/**
 * As `own`, of the baseline; empty where nothing is compared, as all that follow.
 */
before_own: number[]
/**
 * As `total`, of the baseline.
 */
before_total: number[]
/**
 * As `calls`, of the baseline.
 */
before_calls: number[]
/**
 * As `whole`, of the baseline.
 */
before_whole: number
/**
 * As `steps`, of the baseline.
 */
before_steps: number
/**
 * Whether values are of whole steps, and are read divided by their number.
 */
is_per_step: boolean
/**
 * The node that fills the picture, as far as `root` was found; -1: all do.
 */
root: number
/**
 * How many nodes there are in full.
 */
node_count: number
/**
 * Of memory: the labels of devices that can be asked for.
 */
devices: string[]
/**
 * Of memory: whose it is.
 */
device: string
/**
 * Of memory: when most was held.
 */
at_ns: (number | null)
/**
 * What to know about it.
 */
note: string
/**
 * The code that would record more.
 */
remedy: string
/**
 * Where there is nothing: why.
 */
empty: string
}
/**
 * What a frame can be.
 */
export interface FlameKind {
id: string
label: string
}
/**
 * Each name of a flame graph once, the largest own value first.
 */
export interface FlameFunctions {
schema: number
unit: ("bytes" | "ns")
kinds: FlameKind[]
names: string[]
/**
 * What each of `names` is: a place in `kinds`.
 */
name_kinds: number[]
/**
 * Without what it calls, in `unit`.
 */
own: number[]
/**
 * With what it calls, once where it calls itself, in `unit`.
 */
total: number[]
calls: number[]
/**
 * The sum of all own values, in `unit`; also of names that are not listed.
 */
whole: number
/**
 * How many steps that is of; 0: it is not known, or of no steps.
 */
steps: number
/**
 * How many names there are, of which the largest are listed.
 */
all_count: number
/**
 * As `own`, of the baseline; empty where nothing is compared, as all that follow.
 */
before_own: number[]
/**
 * As `total`, of the baseline.
 */
before_total: number[]
/**
 * As `calls`, of the baseline.
 */
before_calls: number[]
/**
 * As `whole`, of the baseline.
 */
before_whole: number
/**
 * As `steps`, of the baseline.
 */
before_steps: number
/**
 * Whether values are of whole steps, and are read divided by their number.
 */
is_per_step: boolean
}
/**
 * Everything about one kernel's runs.
 */
export interface KernelDetails {
schema: number
name: string
full_name: string
durations: TimeDistribution
/**
 * From the launching call's end to the kernel's begin, at least 0; None: no call is known.
 */
delays: (TimeDistribution | null)
steps: StepUse[]
launches: KernelLaunch[]
launch_count: number
streams: StreamUse[]
operators: RelatedOperator[]
/**
 * By the Python functions around the launching operators.
 */
stacks: StackUse[]
stack_count: number
stacks_missing: string
/**
 * The longest runs.
 */
instances: CallInstance[]
}
/**
 * How times spread.
 */
export interface TimeDistribution {
count: number
total_ns: number
min_ns: number
mean_ns: number
p50_ns: number
p95_ns: number
max_ns: number
/**
 * Of the bins: one more than there are counts.
 */
edges_ns: number[]
counts: number[]
/**
 * Whether the bins grow by a factor each, since the times are so far apart.
 */
is_logarithmic: boolean
}
/**
 * What one step has of it.
 */
export interface StepUse {
number: number
call_count: number
/**
 * Host total of an operator, duration of a kernel.
 */
time_ns: number
/**
 * Device time that an operator's calls launched, with calls within.
 */
device_ns: number
}
/**
 * Runs that were launched alike.
 */
export interface KernelLaunch {
/**
 * Blocks in x, y, z (JSON); empty where not recorded.
 */
grid: string
block: string
registers_per_thread: (number | null)
shared_memory_bytes: (number | null)
call_count: number
total_ns: number
mean_ns: number
}
/**
 * Runs on one stream.
 */
export interface StreamUse {
device: number
/**
 * -1: not recorded.
 */
stream: number
call_count: number
total_ns: number
}
/**
 * An operator that calls this one, that this one calls, or that launches this kernel.
 */
export interface RelatedOperator {
/**
 * Empty: none is around it.
 */
name: string
kind: string
call_count: number
/**
 * Of those calls: an operator's host total, a kernel's duration.
 */
time_ns: number
/**
 * Of the time of all rows of this list.
 */
share: number
}
/**
 * Calls from the same Python functions, the innermost first.
 */
export interface StackUse {
frames: StackFrame[]
call_count: number
/**
 * Host total of an operator, duration of a kernel.
 */
time_ns: number
device_ns: number
}
/**
 * One Python function of a call stack.
 */
export interface StackFrame {
/**
 * As the profiler wrote it.
 */
text: string
/**
 * Where it is, if that can be told from the text.
 */
line: (SourceLine | null)
}
/**
 * One call, or one run of a kernel.
 */
export interface CallInstance {
event: number
start_ns: number
duration_ns: number
device_ns: number
/**
 * The thread; or the device and stream.
 */
track: string
/**
 * The number in `ProfilerStep#N`; None: in no complete step.
 */
step: (number | null)
}
/**
 * A device's memory over time.
 */
export interface MemoryOverTime {
schema: number
devices: MemoryDeviceFacts[]
/**
 * Which of them this is.
 */
device: string
start_ns: number
/**
 * The time that is shown: what was asked for, else all of the recording that has memory.
 */
end_ns: number
levels: MemoryLevels
/**
 * The most that was allocated in the time shown.
 */
peak: (MemoryPoint | null)
reserved_peak: (MemoryPoint | null)
ooms: MemoryOom[]
oom_count: number
steps: MemoryStep[]
/**
 * What should be known before the curve is believed.
 */
notes: string[]
}
/**
 * One device whose memory was recorded.
 */
export interface MemoryDeviceFacts {
/**
 * `CPU`, `CUDA 0`, `HIP 1`.
 */
id: string
/**
 * The most that tensors held; where `has_totals` is false, more than at the beginning.
 */
peak_bytes: number
/**
 * When, the first time.
 */
peak_ns: number
/**
 * The most that the caching allocator took from the device; null where it keeps no cache.
 */
most_reserved_bytes: (number | null)
/**
 * All that the device has; null: not recorded.
 */
capacity_bytes: (number | null)
/**
 * Allocations and releases.
 */
event_count: number
/**
 * False before torch 1.10, which wrote no totals.
 */
has_totals: boolean
}
/**
 * Levels behind events of the recording; each holds until the next.
 */
export interface MemoryLevels {
time_ns: number[]
allocated_bytes: (number | null)[]
/**
 * Empty where the allocator keeps no cache.
 */
reserved_bytes: (number | null)[]
/**
 * How many events there are in that time; not all of them need be drawn.
 */
event_count: number
}
/**
 * A moment of the curve.
 */
export interface MemoryPoint {
time_ns: number
bytes: number
}
/**
 * A time that the device ran out of memory.
 */
export interface MemoryOom {
event: number
time_ns: number
asked_bytes: (number | null)
/**
 * Reserved then, and not allocated.
 */
unused_bytes: (number | null)
/**
 * `fragmented`: so much lay unused, in pieces too small. `full`: there was not so much.
 */
cause: string
operator: (string | null)
}
/**
 * A step of the host, for orientation.
 */
export interface MemoryStep {
number: number
start_ns: number
end_ns: number
}
/**
 * Who held the memory, the most first; `name` and `origin` say who.
 */
export interface MemoryHolders {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
device: string
moment_ns: number
/**
 * All that was held; where no totals were recorded, all that the recording tells of.
 */
held_bytes: (number | null)
reserved_bytes: (number | null)
/**
 * Of it, allocated while recording.
 */
recorded_bytes: number
/**
 * Of it, allocated before and freed while recording.
 */
earlier_bytes: number
/**
 * The rest: allocated before the recording and held beyond it; null where not known.
 */
untold_bytes: (number | null)
/**
 * Whether it is the most that the device held in all of the recording.
 */
is_peak: boolean
/**
 * So many further holders are not among the rows.
 */
left_out_count: number
left_out_bytes: number
}
/**
 * Allocations, the first by `sort`; the others are counted. Rows are parallel to the lists.
 */
export interface MemoryAllocations {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
device: string
/**
 * How many fit what was asked.
 */
found_count: number
found_bytes: number
/**
 * Of it, in those that are not among the rows.
 */
left_out_bytes: number
/**
 * The largest allocation of the device, whatever was asked.
 */
largest_bytes: number
/**
 * The place in the file of each row's first event.
 */
event: number[]
/**
 * The operator's call that allocated it; -1: none.
 */
owner_event: number[]
/**
 * Which of `stacks`; -1: none.
 */
stack: number[]
/**
 * Functions, outermost first, parted by `;`.
 */
stacks: string[]
}
/**
 * How a device's memory grows over the steps.
 */
export interface MemoryGrowth {
schema: number
device: string
step_count: number
/**
 * A step: the median of the slopes between all pairs of steps (Theil-Sen).
 */
growth_bytes: (number | null)
/**
 * A step, with 95 % confidence.
 */
least_growth_bytes: (number | null)
most_growth_bytes: (number | null)
/**
 * From the first step's end to the last's.
 */
total_growth_bytes: (number | null)
/**
 * That it grows: `none`, `low`, `medium` (5 %), `high` (1 %, at least 6 steps).
 */
confidence: string
/**
 * Steps until the device is full, were it to go on.
 */
full_after_step_count: (number | null)
steps: Table
leaks: Table
}
/**
 * How much of what a device's allocator reserved lay unused.
 */
export interface MemoryFragmentation {
schema: number
device: string
reserved_peak_ns: number
most_reserved_bytes: number
/**
 * Of it, not allocated then.
 */
unused_bytes: number
unused_share: (number | null)
/**
 * The most that was ever unused.
 */
most_unused_bytes: number
/**
 * Unused of reserved, both over time.
 */
mean_unused_share: (number | null)
end_unused_bytes: number
time_ns: number[]
/**
 * Reserved and not allocated, at the times beside it; it holds until the next.
 */
over_time_bytes: (number | null)[]
start_ns: number
/**
 * The time of those: what was asked for, else all.
 */
end_ns: number
}
/**
 * All of them.
 */
export interface MemoryFiles {
schema: number
files: MemoryFile[]
}
/**
 * A memory snapshot or timeline in a run's folder.
 */
export interface MemoryFile {
id: string
name: string
what: ("snapshot" | "timeline")
file_bytes: number
/**
 * Why it cannot be read here; empty where it can.
 */
problem: string
}
/**
 * What a memory snapshot or timeline tells.
 */
export interface MemoryFileReport {
schema: number
id: string
name: string
what: ("snapshot" | "timeline")
/**
 * Sentences.
 */
summary: string[]
curves: MemoryFileCurve[]
tables: Table[]
}
/**
 * A chart of what a file tells over time.
 */
export interface MemoryFileCurve {
title: string
/**
 * Whether the lines are parts of one whole.
 */
is_stacked: boolean
/**
 * False where no times were recorded: then `at` counts what the allocator did.
 */
is_in_time: boolean
/**
 * In ns from the first event, or the number of the entry.
 */
at: number[]
lines: MemoryLine[]
}
/**
 * One line of a chart.
 */
export interface MemoryLine {
id: string
label: string
help: string
bytes: number[]
}
/**
 * Modules and what they cost; by instance each is followed by those that it calls.
 */
export interface Modules {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
by: ("class" | "instance")
origin: ("Lightning" | "nn.Module" | "record_function")
origin_meaning: string
/**
 * The row of the module that called it, -1 at the top; empty by class.
 */
parent: number[]
/**
 * The modules that called it and itself, parted by `/`; empty by class.
 */
path: string[]
/**
 * Its first call, by the event's place in the file; empty by class.
 */
event: number[]
/**
 * When that began.
 */
start_ns: number[]
end_ns: number[]
/**
 * What this vendor calls a device; empty where nothing ran on one.
 */
device_label: string
/**
 * Host time of backward calls whose module is not known.
 */
unassigned_backward_host_ns: number
unassigned_backward_device_ns: number
/**
 * So many modules, the deepest and last, are not among the rows.
 */
left_out_count: number
}
/**
 * What ran for a module, or for all modules of a class.
 */
export interface ModuleWork {
schema: number
/**
 * So many modules these are.
 */
module_count: number
operators: Table
kernels: Table1
}
/**
 * A table by columns; `values[key]` has `row_count` entries, null where not recorded.
 */
export interface Table1 {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
}
/**
 * What in a recording has a name.
 */
export interface Names {
schema: number
/**
 * Kinds that were recorded; one that was not is left out.
 */
kinds: NamesOfKind[]
}
/**
 * Names of one kind, what takes longest first; the columns have the same length.
 */
export interface NamesOfKind {
kind: ("annotation" | "kernel" | "module" | "operator" | "source-line")
/**
 * A module's is its path, a source line's `file:line function`.
 */
names: string[]
/**
 * Total time: of kernels on the device, of all others on the host.
 */
times_ns: number[]
/**
 * How many names of this kind there are, with those that were left out.
 */
all_count: number
}
/**
 * Everything about one operator's or annotation's calls.
 */
export interface OperatorDetails {
schema: number
name: string
kind: string
host: TimeDistribution1
/**
 * Device total of the calls that launched anything; None: none did.
 */
device: (TimeDistribution | null)
steps: StepUse[]
shapes: ShapeUse[]
shape_count: number
stacks: StackUse[]
stack_count: number
/**
 * The line of code that records call stacks, where there are none; empty where there are.
 */
stacks_missing: string
kernels: LaunchedWork[]
kernel_count: number
callers: RelatedOperator[]
callees: RelatedOperator[]
/**
 * The longest calls.
 */
instances: CallInstance[]
}
/**
 * How times spread.
 */
export interface TimeDistribution1 {
count: number
total_ns: number
min_ns: number
mean_ns: number
p50_ns: number
p95_ns: number
max_ns: number
/**
 * Of the bins: one more than there are counts.
 */
edges_ns: number[]
counts: number[]
/**
 * Whether the bins grow by a factor each, since the times are so far apart.
 */
is_logarithmic: boolean
}
/**
 * Calls with the same shapes and types of inputs.
 */
export interface ShapeUse {
/**
 * JSON; empty where not recorded.
 */
input_dims: string
input_types: string
call_count: number
host_total_ns: number
device_total_ns: number
}
/**
 * A kernel, copy or memory set that an operator launched, itself or in calls within.
 */
export interface LaunchedWork {
name: string
full_name: string
kind: string
event_count: number
total_ns: number
/**
 * Of it, what no operator within launched.
 */
own_ns: number
/**
 * Of all that the operator launched.
 */
share: number
}
/**
 * Where the step time of one recording goes.
 */
export interface Overview {
schema: number
trace: string
worker: string
span: string
verdict: string
dialect: string
synthetic: boolean
/**
 * What this vendor calls a device: `GPU`, `XPU`, `CPU`.
 */
device_label: string
/**
 * What the trace says of how it was made: versions, flags, ranks.
 */
environment: {
[k: string]: string
}
window_ns: number
step: StepReport
categories: Category[]
steps: StepRow[]
devices: DeviceReport[]
idle: IdleCause[]
top_operators: TopRow[]
top_kernels: TopRow[]
longest_gaps: TopRow[]
health: HealthItem[]
/**
 * Settings of the run; empty where no trace handler of stepscope's recorded them.
 */
settings: RunSetting[]
}
/**
 * One step and where its time went; `parts_ns` follows `Overview.categories`.
 */
export interface StepRow {
number: number
name: string
start_ns: number
duration_ns: number
parts_ns: number[]
/**
 * When the host began it: what is narrowed to a step is what the host began in it.
 */
host_start_ns: number
host_end_ns: number
}
/**
 * One cause of device idle time, per step.
 */
export interface IdleCause {
id: string
label: string
help: string
idle_ns: number
/**
 * Of the step.
 */
share: number
/**
 * How many stretches of idle time it has in the window.
 */
gap_count: number
/**
 * Of the longest of them.
 */
start_ns: (number | null)
end_ns: (number | null)
/**
 * What ended it on the device, by its place in the file; None: the window did.
 */
event: (number | null)
}
/**
 * One line of a short list; `view` and `search` lead to the whole story.
 */
export interface TopRow {
name: string
detail: string
value: number
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
share: (number | null)
view: string
search: string
/**
 * Where `name` is short; what the details of a kernel are asked by.
 */
full_name: string
/**
 * Of an operator: `operator` or `annotation`.
 */
kind: string
/**
 * Of what has a place in time: a gap.
 */
start_ns: (number | null)
end_ns: (number | null)
/**
 * What ended a gap, by its place in the file.
 */
event: (number | null)
}
/**
 * All about a rule, as `stepscope explain` prints it.
 */
export interface RulePage {
schema: number
/**
 * The rule's id, also where it was asked for by an alias.
 */
rule: string
title: string
/**
 * Markdown: headings, paragraphs, lists, tables, code; no HTML.
 */
text: string
}
/**
 * Every public table.
 */
export interface Tables {
schema: number
tables: TableInfo[]
}
/**
 * One public table.
 */
export interface TableInfo {
name: string
title: string
/**
 * What a row is, and what the table tells.
 */
meaning: string
/**
 * True where it is of all recordings of a run together.
 */
is_of_run: boolean
columns: string[]
}
/**
 * The tracks of a recording, in the order in which they are shown.
 */
export interface Timeline {
schema: number
start_ns: number
/**
 * When the last slice ends, from the trace's first event.
 */
end_ns: number
names_count: number
tracks: TimelineTrack[]
/**
 * A slice's code is the place here.
 */
categories: TimelineCategory[]
steps: TimelineStep[]
/**
 * What the tracks do not show, and why; empty where they show everything.
 */
note: string
}
/**
 * One track, or the header above some.
 */
export interface TimelineTrack {
id: number
/**
 * The header that it is shown under.
 */
parent: (number | null)
kind: ("annotations" | "counter" | "group" | "idle" | "other" | "steps" | "stream" | "thread")
label: string
detail: string
/**
 * Rows of slices; 0 of a header, and of a counter.
 */
row_count: number
/**
 * Null where nobody has counted: what is worked out when it is asked for.
 */
event_count: (number | null)
/**
 * For how long anything of it ran; null where nobody has summed that up.
 */
busy_ns: (number | null)
/**
 * Its place among the tracks.
 */
order: number
/**
 * Of a counter's values.
 */
unit: string
/**
 * Whether it is shown in full at first.
 */
is_open: boolean
}
/**
 * What slices of a code are.
 */
export interface TimelineCategory {
id: string
label: string
}
/**
 * A step, as the host marked it.
 */
export interface TimelineStep {
number: number
start_ns: number
end_ns: number
}
/**
 * Names of slices; a slice's code is the place here.
 */
export interface TimelineNames {
schema: number
names: string[]
}
/**
 * A counter in equal times; null where no value is known.
 */
export interface TimelineCounter {
schema: number
track: number
level: number
tile: number
start_ns: number
bucket_ns: number
unit: string
/**
 * Over the whole recording.
 */
least: (number | null)
most: (number | null)
/**
 * The least value in each bucket, with the one that held when it began.
 */
min: (number | null)[]
max: (number | null)[]
/**
 * The value when the bucket ends; of a share, its mean in the bucket.
 */
last: (number | null)[]
}
/**
 * All that is known of one slice.
 */
export interface TimelineSlice {
schema: number
event: number
name: string
category: string
track: number
row: number
/**
 * As recorded: below 0 where it began before the first event, as the profiler's own range does.
 * Tracks show it from 0.
 */
start_ns: number
/**
 * As recorded, or where that cannot be drawn as the tracks show it.
 */
duration_ns: number
/**
 * Without the slices within it; null where slices do not nest.
 */
self_ns: (number | null)
/**
 * Sum of what it launched on devices, with what it called; null where that is nothing.
 */
device_ns: (number | null)
arguments: SliceArgument[]
/**
 * The Python functions that led to it, the outermost first.
 */
stack: SliceFrame[]
/**
 * Whose stack it is: `itself`, `launch` or `forward`; empty where there is none.
 */
stack_of: string
/**
 * What contains it, the outermost first.
 */
parents: SliceParent[]
child_count: number
module: (string | null)
/**
 * The innermost operator around it, or around its launch.
 */
operator: (SliceParent | null)
/**
 * The number of the step in which it, or its launch, began.
 */
step: (number | null)
links: SliceLink[]
/**
 * How many links of each kind there are; no more than 100 of each are listed.
 */
link_counts: {
[k: string]: number
}
}
/**
 * What the trace says of an event beside its time.
 */
export interface SliceArgument {
key: string
value: (string | number)
/**
 * Whether the value is longer than what is shown.
 */
is_cut: boolean
}
/**
 * A Python function of a stack.
 */
export interface SliceFrame {
function: string
/**
 * Empty of what is built in.
 */
file: string
line: number
}
/**
 * A slice that contains another.
 */
export interface SliceParent {
event: number
name: string
category: string
}
/**
 * Another slice that one has to do with.
 */
export interface SliceLink {
/**
 * `launches`, `launched by`, `launched by operator`, `waits for`, `awaited by`, `forward`,
 * `backward` or `recorded of`: what the other is to this one.
 */
kind: string
event: number
name: string
category: string
track: number
row: number
start_ns: number
duration_ns: number
}
/**
 * Slices that were found, by time.
 */
export interface TimelineHits {
schema: number
total: number
/**
 * Some of them, next to each other.
 */
hits: TimelineHit[]
/**
 * How many come before those.
 */
first: number
/**
 * Of a search: how many begin in each of 1000 equal times of the recording.
 */
density: number[]
}
/**
 * A slice, and where it is.
 */
export interface TimelineHit {
/**
 * Its place in the file; null where it is none of the file's events.
 */
event: (number | null)
name: string
category: string
track: number
row: number
start_ns: number
duration_ns: number
}
/**
 * A slice beside another, or nearest to a moment.
 */
export interface TimelineNeighbour {
schema: number
/**
 * Null where there is none.
 */
hit: (TimelineHit | null)
}
/**
 * What runs in a part of the timeline.
 */
export interface TimelineArea {
schema: number
start_ns: number
end_ns: number
table: Table2
tracks: AreaTrack[]
}
/**
 * A table by columns; `values[key]` has `row_count` entries, null where not recorded.
 */
export interface Table2 {
schema: number
columns: Column[]
row_count: number
values: {
[k: string]: unknown[]
}
/**
 * Key of the column to sort by at first, largest first; empty: the rows' own order.
 */
sort: string
/**
 * The groupings that this table can be asked for.
 */
groups: string[]
group: string
/**
 * What the share columns are a share of.
 */
total_ns: number
/**
 * Where there is no row: why, and what would record it.
 */
empty: string
/**
 * How many rows there are, where perhaps only the first by `sort` were sent; None: all were.
 */
all_row_count: (number | null)
/**
 * Keys of columns whose values, added over rows, are something's total.
 */
sums: string[]
title: string
/**
 * What a row is, and what the table tells; empty where the page knows.
 */
meaning: string
}
/**
 * One track's time in an area.
 */
export interface AreaTrack {
track: number
busy_ns: number
idle_ns: number
slice_count: number
}
/**
 * Figures from span to span, or from run to run.
 */
export interface Trends {
schema: number
figures: TrendFigure[]
/**
 * Of the run that was recorded first before others, as far as the files' names tell; a run's
 * spans in their order.
 */
points: TrendPoint[]
/**
 * Recordings that are still to be read.
 */
waiting_count: number
/**
 * Recordings that cannot be read, and are left out.
 */
unreadable_count: number
}
/**
 * A figure that is followed.
 */
export interface TrendFigure {
name: string
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
meaning: string
}
/**
 * A run's figures at one span: means over its workers; of `memory_peak_bytes` the largest.
 */
export interface TrendPoint {
/**
 * The run's id.
 */
run: string
run_name: string
/**
 * Which of the worker's recordings, from 1.
 */
span: number
/**
 * The recordings that it is the mean of, a worker each.
 */
traces: string[]
/**
 * By name; null where no recording has it.
 */
figures: {
[k: string]: number | null
}
/**
 * The mean step of the quickest worker.
 */
least_step_ns: (number | null)
/**
 * The mean step of the slowest worker.
 */
most_step_ns: (number | null)
/**
 * Steps that were recorded whole, of all its workers.
 */
step_count: number
/**
 * Pieces of advice a recording, symptoms and notes included.
 */
finding_count: number
/**
 * Of them, those of each severity.
 */
severity_counts: {
[k: string]: number
}
/**
 * By rule: what its findings could save at most, of the step or window.
 */
recoverable_shares: {
[k: string]: number
}
}
