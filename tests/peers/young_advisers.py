"""What other programs say of a trace, and whether that is right: gpu-idle, fournex, pytscope.

They are the ones that read a profiler's trace and name a cause. Each is run as its users would, in
a process of its own, on the uncompressed file where it cannot open another. A grade is reckoned
from what it prints, by the words for the true cause:

    right     it names the true cause, or says that a healthy run is healthy
    wrong     it names another, or says that all is well where it is not
    silent    it says that it cannot tell
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
    """A recording whose cause is known."""

    path: str
    """Below the shared traces."""
    truth: str
    rules: tuple[str, ...]
    """Of stepscope's: one of them comes first; none where the run is healthy."""
    names: str
    """Words by which another program names the cause: a pattern."""


LOADER = r"dataloader|input.bound|loader"
CASES = (
    Case(
        path="kineto/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        truth="the DataLoader, 34 % exposed",
        rules=("dataloader-no-workers",),
        names=LOADER,
    ),
    Case(
        path="kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz",
        truth="the DataLoader, 23 % exposed",
        rules=("dataloader-no-workers",),
        names=LOADER,
    ),
    Case(
        path="kineto/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
        truth="float32 products, and 19 % of dispatch",
        rules=("no-mixed-precision", "launch-bound"),
        names=r"launch|dispatch|small ?batch|mixed.precision|\bamp\b",
    ),
    Case(
        path="kineto/resnet50_num_workers_4/worker0.1623213129365.pt.trace.json.gz",
        truth="float32 products, and 19 % of dispatch",
        rules=("no-mixed-precision", "launch-bound"),
        names=r"launch|dispatch|small ?batch|mixed.precision|\bamp\b",
    ),
    Case(
        path="tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        truth="healthy, 92 % busy; pointwise kernels could be fused",
        rules=(),
        names=r"no bottleneck|no issues found",
    ),
    Case(
        path="tracelens/b200/eager_trace.json.gz",
        truth="dispatch: 14 % busy",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
        truth="dispatch: 16 % busy, a batch of 4",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="tracelens/mi300/Falconsai_nsfw_image_detection__1016002.json.gz",
        truth="dispatch, a batch of 4",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
    Case(
        path="hta/trace_diff/control/control.json.gz",
        truth="19 % of communication that nothing hides",
        rules=("exposed-communication",),
        names=r"EXPOSED_COMM|exposed communication|exposed.*comm",
    ),
    Case(
        path="hta/nccl_parser_config/nccl_data.json.gz",
        truth="dispatch: 24 % busy",
        rules=("launch-bound",),
        names=r"launch|dispatch|small ?batch",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a program said of a recording."""

    text: str
    has_crashed: bool


def gpu_idle(trace: Path, _folder: Path) -> Said:
    """Run gpu-idle on a plain JSON file: it opens no other."""
    return run_program("from analyzer import _cli; _cli()", str(trace))


def fournex(trace: Path, folder: Path) -> Said:
    """Run fournex on a folder that holds the trace where it looks for one."""
    run = folder / "run"
    (run / "profiler").mkdir(parents=True)
    (run / "profiler" / trace.name).symlink_to(trace)
    return run_program(
        "from fournex.cli import main; main()", "analyze", str(run), "--scope", "run"
    )


def pytscope(trace: Path, folder: Path) -> Said:
    """Run pytscope on an empty run with this trace."""
    run = folder / "run"
    run.mkdir()
    return run_program(
        "from pytscope.cli import main; main()", "analyze", str(run), "--trace", str(trace)
    )


PROGRAMS: dict[str, Callable[[Path, Path], Said]] = {
    "gpu-idle 0.1.0": gpu_idle,
    "fournex 0.3.1": fournex,
    "pytscope 0.2.1": pytscope,
}
CANNOT_TELL = (
    r"insufficient_telemetry|unattributed|known signatures match|Analysis incomplete|No trace data"
    r"|No steps or trace found"
)


def run_program(code: str, *arguments: str) -> Said:
    """Run a program of Python with the peers on its path, and return all that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(PEERS), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Said(text=done.stdout + done.stderr, has_crashed="Traceback (most recent" in done.stderr)


def verdict_of(said: Said) -> str:
    """Return the part by which it is graded: the primary bottleneck where one is told, or all."""
    leading = re.search(r"Primary Bottleneck : (\S+)", said.text)
    return leading[1] if leading else said.text


def grade(said: Said, case: Case) -> Grade:
    """Return whether what was said names the true cause."""
    return "crash" if said.has_crashed else grade_of(verdict_of(said), case.names)


def grade_of(verdict: str, names: str) -> Grade:
    """Return whether a verdict names the cause, or the health, that `names` is a pattern of."""
    if re.search(CANNOT_TELL, verdict):
        return "silent"
    return "right" if re.search(names, verdict, re.IGNORECASE) else "wrong"


def of_peers(case: Case) -> dict[str, Grade]:
    """Return every program's grade on a recording."""
    grades: dict[str, Grade] = {}
    for name, program in PROGRAMS.items():
        with TemporaryDirectory() as folder:
            plain = Path(folder) / "trace.json"
            plain.write_bytes(gzip.decompress((SHARED_TRACES / case.path).read_bytes()))
            grades[name] = grade(program(plain, Path(folder)), case)
    return grades


def of_stepscope(case: Case) -> tuple[str, str]:
    """Return our grade and verdict: the first cause that is serious must be the true one."""
    from loading import trace_at
    from stepscope.advice import advise
    from stepscope.model.trace import Run

    report = advise(Run(name="run", workers=(trace_at(SHARED_TRACES / case.path),)))
    serious = [
        each.outcome.rule
        for each in report.merged
        if each.outcome.severity in ("critical", "warning") and not each.outcome.is_symptom
    ]
    if not case.rules:
        is_right = "and is the limit; the loop keeps it busy" in report.verdict
        return "right" if is_right else "wrong", report.verdict
    return "right" if serious[:1] and serious[0] in case.rules else "wrong", report.verdict


def page() -> str:
    """Return the page in Markdown."""
    lines = [
        "# Beside other advisers",
        "",
        "What programs that read a profiler's trace say of the same recordings, each run as its "
        "users would. *Right*: it names the true cause, or calls a healthy run healthy. *Silent*: "
        "it says that it cannot tell. Made by `python -m peers.young_advisers` in `tests`; a test "
        "keeps our column.",
        "",
        f"| recording | truth | stepscope | {' | '.join(PROGRAMS)} |",
        f"|---|---|---|{'---|' * len(PROGRAMS)}",
    ]
    totals: dict[str, int] = {}
    verdicts = []
    for case in CASES:
        own, verdict = of_stepscope(case)
        grades = {"stepscope": own, **of_peers(case)}
        for name, each in grades.items():
            totals[name] = totals.get(name, 0) + (each == "right")
        lines.append(f"| {case.path} | {case.truth} | {' | '.join(grades.values())} |")
        verdicts.append(f"- {case.path}: {verdict}")
    counts = " | ".join(f"**{totals[name]} of {len(CASES)}**" for name in totals)
    lines += [f"| right | | {counts} |", "", "Our verdicts:", "", *verdicts, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
