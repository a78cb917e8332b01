"""Reports for tests of what renders them: one recording with every kind of answer, and eight."""

import msgspec

from stepscope.advice.run_advice import with_outcomes
from stepscope.base.findings import (
    ClaimReport,
    EventReference,
    Evidence,
    EvidenceColumn,
    EvidenceRow,
    EvidenceTable,
    Fix,
    Link,
    Outcome,
    SourceLine,
)
from stepscope.base.report import (
    BudgetLine,
    DeviceReport,
    HealthItem,
    OverallStatus,
    Problem,
    Report,
    RunReport,
    StepReport,
    WorkerReport,
)

CODE = (
    "loader = DataLoader(dataset, num_workers=8, pin_memory=True, "
    "persistent_workers=True, prefetch_factor=4)"
)
FOUND = Outcome(
    rule="dataloader-no-workers",
    title="The DataLoader runs in the training process",
    category="input-pipeline",
    status="found",
    worker="worker0",
    span="1",
    trace="id",
    severity="critical",
    confidence="high",
    claim=ClaimReport(
        low_ns=44_400_000,
        high_ns=59_300_000,
        share=0.339,
        net_low_ns=44_400_000,
        net_high_ns=59_300_000,
        net_share=0.339,
        method="All of it.",
        steps="5-10",
        step_ranges=((5, 10),),
    ),
    message="6 batches were loaded in the training process.",
    why="Loading and training take turns.",
    evidence=(
        Evidence("Exposed loading", 0.339, "share"),
        Evidence("Loading in all", 416_000_000, "ns"),
        Evidence("Bytes a step", 19_300_000, "bytes"),
        Evidence("Rate", 10_100_000_000, "bytes/s"),
        Evidence("Batches", 1462, "count"),
        Evidence("Line", "train.py(42): <module>", "code"),
    ),
    events=(EventReference("next", "thread 7", 350_000_000, 73_400_000, "most of it in aten::to"),),
    fix=Fix("Load in workers.", CODE, "python", "It takes less than 1 %.", ("Needs CPU cores.",)),
    links=("https://docs.pytorch.org/docs/stable/data.html",),
    tables=(
        EvidenceTable(
            "What loading does",
            (
                EvidenceColumn("Function or operator", "text"),
                EvidenceColumn("Takes", "ns"),
                EvidenceColumn("Of loading", "share"),
            ),
            (
                EvidenceRow(("aten::to", 35_900_000, 0.086), Link("operators", "aten::to")),
                EvidenceRow(("aten::div", None, 0.084)),
            ),
        ),
    ),
    locations=(SourceLine("train.py", 42, "main"), SourceLine("data/images.py", 7)),
    effort="flag",
    risk="memory",
    fingerprint="f1",
)
COVERED = Outcome(
    rule="dataloader-bound",
    title="The step waits for the DataLoader",
    category="input-pipeline",
    status="found",
    worker="worker0",
    span="1",
    trace="id",
    severity="critical",
    confidence="high",
    claim=ClaimReport(
        low_ns=44_400_000,
        high_ns=59_300_000,
        share=0.339,
        net_low_ns=0,
        net_high_ns=0,
        net_share=0.0,
        method="59.3 ms of it is counted under dataloader-no-workers.",
    ),
    message="Waiting for data takes 59.3 ms of each step.",
    fix=Fix("See dataloader-no-workers."),
    fingerprint="f2",
)
SYMPTOM = Outcome(
    rule="acme/low-watts",
    title="The device draws little power",
    category="utilization",
    status="found",
    worker="worker0",
    span="1",
    trace="id",
    severity="info",
    confidence="low",
    message="It draws 120 W.",
    is_symptom=True,
    life_cycle="preview",
    package="acme-rules",
    baseline="new",
    fingerprint="f3",
)
REJECTED = Outcome(
    rule="item-sync",
    title="Reading values drains the device",
    category="synchronization",
    status="rejected",
    worker="worker0",
    span="1",
    trace="id",
    message="The host is blocked 28.0 % of the time; the GPU stays 96.0 % busy: saves nothing.",
    evidence=(Evidence("GPU at work meanwhile", 0.96, "share"),),
)
SUPPRESSED = msgspec.structs.replace(
    FOUND,
    rule="pageable-h2d-copy",
    title="Copies come from pageable memory",
    status="suppressed",
    suppressed_by="configuration",
    reason="the machine has no memory to pin",
    severity="warning",
    claim=ClaimReport(1_000_000, 3_000_000, 0.017, 1_000_000, 3_000_000, 0.017, ""),
    locations=(),
    tables=(),
    fingerprint="f4",
)
PASSED = Outcome("launch-bound", "…", "host", "passed", "worker0", "1", "id")
NOT_APPLICABLE = Outcome(
    "ddp-bucket-copy",
    "…",
    "communication",
    "not-applicable",
    "worker0",
    "1",
    "id",
    reason="no DistributedDataParallel ran",
)
CANNOT_TELL = Outcome(
    "tiny-batch-size",
    "…",
    "shape",
    "cannot-tell",
    "worker0",
    "1",
    "id",
    reason="no shapes were recorded",
    remedy="profile(record_shapes=True)",
)
FAILED = Outcome(
    "copy-heavy", "…", "memory", "failed", "worker0", "1", "id", reason="KeyError('x')"
)
BUDGET = (
    BudgetLine("kernel", "Kernel", 98_600_000, 0.5539, 0, 0, ()),
    BudgetLine("memset", "Memset", 40_000, 0.0002, 0, 0, ()),
    BudgetLine(
        "dataloader",
        "DataLoader",
        79_360_000,
        0.4458,
        44_400_000,
        59_300_000,
        ("dataloader-no-workers",),
    ),
)
GPU = DeviceReport(0, "GPU 0", 0.566, 0.56, None, None, None, None, None, {})
WORKER = WorkerReport(
    trace="id",
    name="worker0",
    span="1",
    rank=3,
    events=75_718,
    dialect="cuda",
    synthetic=True,
    verdict="Step 178 ms (6 steps). The GPU is busy 56.6 %.",
    step=StepReport(6, 178_000_000, 0, {}),
    devices=(GPU,),
    idle_ns={},
    health=(HealthItem("truncated-gzip", "warning", 1, "the stream ends early", "Copy it again"),),
    budget=BUDGET,
    standing=OverallStatus("found", "1 thing to change."),
    file="worker0.1.pt.trace.json.gz",
)
OUTCOMES = (
    FOUND,
    COVERED,
    SYMPTOM,
    REJECTED,
    FAILED,
    PASSED,
    CANNOT_TELL,
    NOT_APPLICABLE,
    SUPPRESSED,
)


def run_of(*outcomes: Outcome, workers: tuple[WorkerReport, ...] = (WORKER,)) -> RunReport:
    """Return a run with these answers, merged as advice merges them."""
    return with_outcomes(RunReport("resnet50", workers, ()), outcomes)


REPORT = Report(
    runs=(run_of(*OUTCOMES),),
    problems=(Problem("log/x.json", "the file is empty", "Record it again"),),
    version="1.2.3",
)


def on_rank(rank: int) -> WorkerReport:
    """Return one of eight recordings, the later the slower."""
    return msgspec.structs.replace(
        WORKER,
        trace=f"id{rank}",
        rank=rank,
        health=(),
        step=StepReport(6, (150 + rank) * 1_000_000, 0, {}),
        file=f"rank{rank}.pt.trace.json",
    )


def _found_on(rank: int) -> Outcome:
    low_ns, high_ns = 10_000_000 + rank, (50 + rank) * 1_000_000
    claim = ClaimReport(
        *(low_ns, high_ns, 0.3, low_ns, high_ns, 0.3, "", "5"), step_ranges=((5, 5),)
    )
    return msgspec.structs.replace(FOUND, trace=f"id{rank}", claim=claim)


RANKS = Report(
    runs=(
        msgspec.structs.replace(
            run_of(
                *(_found_on(rank) for rank in range(6)),
                *(msgspec.structs.replace(REJECTED, trace=f"id{rank}") for rank in (6, 7)),
                *(msgspec.structs.replace(PASSED, trace=f"id{rank}") for rank in range(8)),
                *(msgspec.structs.replace(CANNOT_TELL, trace=f"id{rank}") for rank in range(8)),
                workers=tuple(on_rank(rank) for rank in range(8)),
            ),
            verdict="8 traces, step 150 ms to 157 ms. The slowest (rank 7): Step 157 ms.",
        ),
    ),
    version="1.2.3",
)
HOSTILE = (
    "\x1b[31mred\x1b[0m\x07<script>alert(1)</script> [bold]x[/] [a](http://e.x) ![b](http://e.x) "
    "`y` | z\r\n# not a heading @you ::error::x ##[error]x %0A &#64;me &commat;me \u202e\ud800"
)


def with_texts(hostile: str) -> Report:
    """Return the report with this in every place that can hold text of a trace."""
    texts = {"message": hostile, "title": hostile}
    found = msgspec.structs.replace(
        FOUND,
        message=hostile,
        worker=hostile,
        evidence=(Evidence(hostile, hostile, "text"), Evidence("c", hostile, "code")),
        events=(EventReference(hostile, hostile, 0, 1, hostile),),
        fix=Fix(hostile, hostile, "python", hostile, (hostile,)),
        doubts=(hostile,),
        links=(hostile, f"https://{hostile}", 'https://x/"onclick="x'),
        locations=(SourceLine(hostile, 3, hostile),),
        tables=(
            EvidenceTable(
                hostile,
                (EvidenceColumn(hostile, "text"), EvidenceColumn(hostile, "code")),
                (EvidenceRow((hostile, hostile), Link("operators", hostile)),),
            ),
        ),
    )
    outcomes = (
        found,
        msgspec.structs.replace(REJECTED, **texts),
        msgspec.structs.replace(SUPPRESSED, reason=hostile, **texts),
        msgspec.structs.replace(FAILED, reason=hostile),
        msgspec.structs.replace(CANNOT_TELL, reason=hostile, remedy=hostile),
        msgspec.structs.replace(PASSED, doubts=(hostile,)),
    )
    worker = msgspec.structs.replace(
        WORKER,
        name=hostile,
        verdict=hostile,
        dialect=hostile,
        file=hostile,
        standing=OverallStatus("healthy", hostile),
        health=(HealthItem(hostile, "critical", 1, hostile, hostile),),
    )
    run = msgspec.structs.replace(run_of(*outcomes, workers=(worker,)), name=hostile)
    return Report((run,), (Problem(hostile, hostile, hostile),), notes=(hostile,))
