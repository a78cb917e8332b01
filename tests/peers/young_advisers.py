"""Grades of other programs that read a trace and name a cause: gpu-idle, fournex, pytscope.

Each runs as its users would run it, in a separate process, on the uncompressed file if it cannot
open another. The grade follows from its output, by the terms for the true cause:

    right     it names the true cause, or calls a healthy run healthy
    wrong     it names another cause, or calls a faulty run healthy
    silent    it reports that it has no result
    crash     it ends with a traceback

`python -m peers.young_advisers` writes the table into docs/peers.md.
"""

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from loading import ROOT, SHARED_TRACES

Grade = Literal["right", "wrong", "silent", "crash"]
PEERS = ROOT / ".venv" / "peers"
PAGE = ROOT / "docs" / "peers.md"
SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Case:
    """A trace whose cause is known."""

    path: str
    """Relative to the shared traces."""
    truth: str
    rules: tuple[str, ...]
    """Rules of stepscope, one of which must come first; empty for a healthy run."""
    names: str
    """Pattern of the terms with which other programs name the cause."""


LOADER = r"dataloader|input.bound|loader"
CASES = (
    Case(
        path="kineto/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        truth="data loading, exposed for 34 % of the step",
        rules=("dataloader-no-workers",),
        names=LOADER,
    ),
    Case(
        path="kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",
        truth="data loading, exposed for 23 % of the step",
        rules=("dataloader-no-workers",),
        names=LOADER,
    ),
    Case(
        path="kineto/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
        truth="launch overhead; with all kernels at zero time the step is 1 % shorter",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch|mixed.precision|\bamp\b",
    ),
    Case(
        path="kineto/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
        truth="idle gaps and launch overhead; with all kernels at zero time the step stays 143 ms",
        rules=("gpu-idle-gap", "launch-bound"),
        names=r"launch|dispatch|small ?batch|mixed.precision|\bamp\b",
    ),
    Case(
        path="tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        truth="healthy: the GPU is busy 92 %; pointwise kernels could be fused",
        rules=(),
        names=r"no bottleneck|no issues found",
    ),
    Case(
        path="tracelens/b200/eager_trace.json.gz",
        truth="launch overhead: the GPU is busy 14 %",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
        truth="launch overhead: the GPU is busy 16 %, batch size 4",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="tracelens/mi300/Falconsai_nsfw_image_detection__1016002.json.gz",
        truth="launch overhead, batch size 4",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="hta/trace_diff/control/control.json.gz",
        truth="exposed communication, 19 % of the step",
        rules=("exposed-communication",),
        names=r"EXPOSED_COMM|exposed communication|exposed.*comm",
    ),
    Case(
        path="hta/nccl_parser_config/nccl_data.json.gz",
        truth="launch overhead: the GPU is busy 24 %",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Output of a program for one trace."""

    text: str
    has_crashed: bool


def gpu_idle(trace: Path, _folder: Path) -> Output:
    """Run gpu-idle on a plain JSON file, the only kind that it opens."""
    return run_program("from analyzer import _cli; _cli()", str(trace))


def fournex(trace: Path, folder: Path) -> Output:
    """Run fournex on a folder with the trace in the subfolder that it reads."""
    run = folder / "run"
    (run / "profiler").mkdir(parents=True)
    (run / "profiler" / trace.name).symlink_to(trace)
    return run_program(
        "from fournex.cli import main; main()", "analyze", str(run), "--scope", "run"
    )


def pytscope(trace: Path, folder: Path) -> Output:
    """Run pytscope on an empty run with this trace."""
    run = folder / "run"
    run.mkdir()
    return run_program(
        "from pytscope.cli import main; main()", "analyze", str(run), "--trace", str(trace)
    )


PROGRAMS: dict[str, Callable[[Path, Path], Output]] = {
    "gpu-idle 0.1.0": gpu_idle,
    "fournex 0.3.1": fournex,
    "pytscope 0.2.1": pytscope,
}
NO_RESULT = (
    r"insufficient_telemetry|unattributed|known signatures match|Analysis incomplete|No trace data"
    r"|No steps or trace found"
)


def run_program(code: str, *arguments: str) -> Output:
    """Run Python code with the peers on its path, and return all its output."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(PEERS), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Output(
        text=done.stdout + done.stderr, has_crashed="Traceback (most recent" in done.stderr
    )


def verdict_of(output: Output) -> str:
    """Return the graded part of an output: the primary bottleneck, or all if there is none."""
    leading = re.search(r"Primary Bottleneck : (\S+)", output.text)
    return leading[1] if leading else output.text


def grade(output: Output, case: Case) -> Grade:
    """Return the grade of an output: whether it names the true cause."""
    return "crash" if output.has_crashed else grade_of(verdict_of(output), case.names)


def grade_of(verdict: str, names: str) -> Grade:
    """Return the grade of a verdict: whether it matches the pattern `names` of the truth."""
    if re.search(NO_RESULT, verdict):
        return "silent"
    return "right" if re.search(names, verdict, re.IGNORECASE) else "wrong"


def of_peers(case: Case) -> dict[str, Grade]:
    """Return the grade of every program on a trace."""
    grades: dict[str, Grade] = {}
    for name, program in PROGRAMS.items():
        with TemporaryDirectory() as folder:
            plain = Path(folder) / "trace.json"
            plain.write_bytes(gzip.decompress((SHARED_TRACES / case.path).read_bytes()))
            grades[name] = grade(program(plain, Path(folder)), case)
    return grades


def of_stepscope(case: Case) -> tuple[str, str]:
    """Return our grade and verdict: the first cause at warning or above must be the true one."""
    from loading import trace_at
    from stepscope.advice import advise
    from stepscope.model.trace import Run

    report = advise(Run(name="run", workers=(trace_at(SHARED_TRACES / case.path),)))
    serious = [
        finding.outcome.rule
        for finding in report.merged
        if finding.outcome.severity in ("critical", "warning") and not finding.outcome.is_symptom
    ]
    if not case.rules:
        is_right = "and is the limit; the loop keeps it busy" in report.verdict
        return "right" if is_right else "wrong", report.verdict
    return "right" if serious[:1] and serious[0] in case.rules else "wrong", report.verdict


def page() -> str:
    """Return the page in Markdown."""
    lines = [
        "# Comparison with other tools",
        "",
        "The results of programs that read the trace of a profiler and name a cause, on the same "
        "traces. Each runs as its users would run it. *Right*: it names the true cause, or calls a "
        "healthy run healthy. *Wrong*: it names another cause, or calls a faulty run healthy. "
        "*Silent*: it reports that it has no result. `python -m peers.young_advisers`, in `tests`, "
        "writes this page; a test checks the column of stepscope.",
        "",
        f"| trace | true cause | stepscope | {' | '.join(PROGRAMS)} |",
        f"|---|---|---|{'---|' * len(PROGRAMS)}",
    ]
    totals: dict[str, int] = {}
    verdicts = []
    for case in CASES:
        stepscope_grade, verdict = of_stepscope(case)
        grades = {"stepscope": stepscope_grade, **of_peers(case)}
        for name, result in grades.items():
            totals[name] = totals.get(name, 0) + (result == "right")
        lines.append(f"| {case.path} | {case.truth} | {' | '.join(grades.values())} |")
        verdicts.append(f"- {case.path}: {verdict}")
    counts = " | ".join(f"**{totals[name]} of {len(CASES)}**" for name in totals)
    lines += [f"| right | | {counts} |", "", "Verdicts of stepscope:", "", *verdicts, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
