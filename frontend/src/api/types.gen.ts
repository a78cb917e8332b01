/* Generated from plugin/stepscope/api/messages.py by `npm run types`; do not edit. */

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
Overview?: Overview
Category?: Category
StepRow?: StepRow
IdleCause?: IdleCause
TopRow?: TopRow
Table?: Table
Column?: Column
ApiError?: ApiError
}
/**
 * Everything found under the log directory.
 */
export interface Runs {
schema: number
logdir: string
scanning: boolean
loading: boolean
runs: RunState[]
problems: Problem[]
looked_for: string
}
/**
 * A run: a folder with traces.
 */
export interface RunState {
id: string
name: string
synthetic: boolean
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
}
/**
 * One recording of a worker: one trace file.
 */
export interface Span {
trace: string
label: string
file: string
state: ("cancelled" | "queued" | "reading" | "ready" | "unreadable")
progress: (Progress | null)
problem: (Problem | null)
place: (number | null)
file_bytes: number
events: (number | null)
damage: (("critical" | "info" | "warning") | null)
}
/**
 * How far the reading of one file has come.
 */
export interface Progress {
phase: ("advising" | "analysing" | "reading" | "waiting")
bytes_done: number
bytes_total: number
events: number
elapsed_ns: number
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
outcomes: Outcome[]
merged: MergedOutcome[]
verdict: string
}
/**
 * One worker's recording: one trace file.
 */
export interface WorkerReport {
trace: string
name: string
span: string
rank: (number | null)
events: number
dialect: string
synthetic: boolean
verdict: string
step: StepReport
devices: DeviceReport[]
idle_ns: {
[k: string]: number
}
health: HealthItem[]
inflated_bytes: number
reader: string
producer: string
fingerprint: string
record_next: RecordNext[]
profile_call: string
budget: BudgetLine[]
standing: (Standing | null)
file: string
}
/**
 * The mean step. Without steps, `count` is 0 and the figures are of the whole window.
 */
export interface StepReport {
count: number
mean_ns: number
standard_deviation_ns: number
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
busy_share: number
kernel_busy_share: number
sm_efficiency_share: (number | null)
occupancy_share: (number | null)
tensor_core_share: (number | null)
memory_peak_bytes: (number | null)
memory_capacity_bytes: (number | null)
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
nature: ("damage" | "gap" | "note")
of_count: (number | null)
action: string
lost_bytes: number
examples: HealthExample[]
effect: ("low" | "none" | "withheld")
affects: string[]
}
/**
 * One place in the file where a thing was found.
 */
export interface HealthExample {
offset_bytes: number
text: string
start_ns: (number | null)
}
/**
 * Something that was not recorded, and the line of code that records it next time.
 */
export interface RecordNext {
flag: string
why: string
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
recoverable_high_ns: number
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
 * What one rule said of one worker's recording.
 */
export interface Outcome {
rule: string
title: string
category: string
status: ("cannot-tell" | "failed" | "found" | "not-applicable" | "passed" | "rejected" | "suppressed")
worker: string
span: string
trace: string
severity: (("critical" | "info" | "warning") | null)
confidence: (("high" | "low" | "medium") | null)
claim: (ClaimReport | null)
message: string
why: string
evidence: Evidence[]
events: EventReference[]
fix: (Fix | null)
reason: (string | null)
remedy: (string | null)
links: string[]
doubts: string[]
tables: EvidenceTable[]
locations: SourceLine[]
effort: (("day" | "flag" | "hour") | null)
risk: (("behaviour" | "memory" | "none" | "numerics") | null)
life_cycle: ("deprecated" | "preview" | "stable")
is_symptom: boolean
fingerprint: string
package: string
culprit: string
suppressed_by: ("" | "baseline" | "configuration" | "recording")
baseline: ("" | "new" | "unchanged" | "worse")
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
net_share: number
method: string
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
view: ("advice" | "health" | "kernels" | "operators" | "overview")
search?: (string | null)
group?: (string | null)
step?: (number | null)
start_ns?: (number | null)
end_ns?: (number | null)
trace?: (string | null)
source?: (string | null)
rank?: (number | null)
}
/**
 * One event of the trace that shows the problem.
 */
export interface EventReference {
name: string
track: string
start_ns: number
duration_ns: number
detail: string
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
outcome: Outcome
traces: string[]
of_count: number
where: string
net_low_ns: (number | null)
net_median_ns: (number | null)
net_high_ns: (number | null)
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
device_label: string
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
 * One step and where its time went; `parts_ns` follows `Overview.categories`.
 */
export interface StepRow {
number: number
name: string
start_ns: number
duration_ns: number
parts_ns: number[]
}
/**
 * One cause of device idle time, per step.
 */
export interface IdleCause {
id: string
label: string
help: string
idle_ns: number
share: number
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
sort: string
groups: string[]
group: string
total_ns: number
empty: string
}
/**
 * One column of a table.
 */
export interface Column {
key: string
label: string
unit: ("bytes" | "bytes/s" | "code" | "count" | "ns" | "share" | "text")
help: string
hidden: boolean
}
/**
 * Why a request has no answer.
 */
export interface ApiError {
code: string
message: string
hint: string
}
