"""Outputs of other programs on the same traces: torch-tb-profiler, gpu-idle, fournex, pytscope.

Each runs as its users would run it, in a separate process, and is graded by keywords (see
`peers.young_advisers`). That takes minutes, so peers.json next to this file stores the outputs with
the hash of the traces, and the programs run again only on traces that changed. Grades are not
stored: they follow from the outputs and the true causes.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import msgspec

from loading import SAMPLE_LOGS
from peers.young_advisers import PROGRAMS as YOUNG
from peers.young_advisers import Grade, Output, grade_of, run_program, verdict_of
from score.stories import Recording, Stories

STORED = Path(__file__).with_name("peers.json")
PROCESS_COUNT = 2
BEST_FIRST: tuple[Grade, ...] = ("right", "wrong", "silent", "crash")
TORCH_TB_PROFILER = """
import logging, sys, warnings
warnings.simplefilter("ignore")
import torch_tb_profiler.profiler
from torch_tb_profiler.profiler.data import RunProfileData
logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
profile = RunProfileData.parse("worker", "1", sys.argv[1], sys.argv[2])
print(*profile.recommendations or ["No recommendation"], sep="\\n")
"""


class ProgramOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a program on one file."""

    verdict: str
    has_crashed: bool = False


class RunOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs of all programs on one run."""

    sha256: str
    """Hash of its files."""
    outputs: dict[str, tuple[ProgramOutput, ...]] = msgspec.field(name="said")
    """Program to its output on each file, in the order of the file names."""


def torch_tb_profiler(trace: Path, folder: Path) -> Output:
    """Run torch-tb-profiler's reading of a file, and return its recommendations."""
    output = run_program(TORCH_TB_PROFILER, str(trace), str(folder))
    return Output(text=re.sub(r"<[^>]*>", "", output.text), has_crashed=output.has_crashed)


PROGRAMS: Mapping[str, Callable[[Path, Path], Output]] = MappingProxyType(
    {f"torch-tb-profiler {version('torch-tb-profiler')}": torch_tb_profiler, **YOUNG}
)

# Patterns of the terms with which a program names the cause of a rule of stepscope; for other
# rules, the words of the rule's id. They are generous: a term mentioned in passing counts.
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "cpu-bfloat16": r"mixed.precision|\bamp\b|bf16|bfloat16",
        "cpu-optimizer-not-fused": r"fused|foreach|optimi[sz]er",
        "dataloader-bound": r"data ?loader|input.bound|data loading",
        "dataloader-no-workers": r"inside the DataLoader|input.bound|data loading",
        "ddp-bucket-copy": r"bucket",
        "ddp-find-unused-parameters": r"unused",
        "exposed-communication": r"communication|exposed.*comm",
        "float64-compute": r"float64|double|fp64|precision",
        "host-device-pingpong": r"ping.?pong|round.?trip|cop(y|ies|ying)",
        "item-sync": r"\.item\(\)|sync",
        "launch-bound": r"launch|dispatch|small ?batch|batch size",
        "model-on-cpu": r"\bon (the )?cpu|no gpu|gpu is not used",
        "no-mixed-precision": r"mixed.precision|\bamp\b|fp16|bf16|bfloat16",
        "numpy-in-step": r"numpy|host.stall|host.bound|cpu.bound",
        "pageable-h2d-copy": r"pin|host.to.device cop|copy.bound",
        "python-loop-indexing": r"python loop|indexing|vectori[sz]",
        "recompile-in-loop": r"recompil|dynamic shape|shape volatility",
        "small-collectives": r"bucket|small (collective|message)",
        "straggler-rank": r"straggler|slow(est)? rank|imbalance",
        "tiny-batch-size": r"small ?batch|batch size",
        "unfused-elementwise": r"fuse|fusion|elementwise|pointwise|torch\.compile",
    }
)
WELL = r"no bottleneck|no issues found|no recommendation"


def names_of(truth: Recording) -> str:
    """Return the pattern of the correct terms for a run."""
    if truth.healthy:
        return "|".join((WELL, *map(_words, truth.also)))
    return "|".join(_words(cause) for cause in truth.causes) or "(?!)"


def _words(rule: str) -> str:
    return WORDS.get(rule, re.escape(rule).replace(r"\-", ".?"))


def grade(outputs: tuple[ProgramOutput, ...], truth: Recording) -> Grade:
    """Return the grade of the outputs on a run's files: the best for a fault, else the worst."""
    grades = [_grade(output, truth) for output in outputs]
    if truth.healthy:
        return next((bad for bad in ("wrong", "crash", "silent") if bad in grades), "right")
    return min(grades, key=BEST_FIRST.index)


def _grade(output: ProgramOutput, truth: Recording) -> Grade:
    if output.has_crashed:
        return "crash"
    if not truth.healthy and output.verdict == "No recommendation":
        return "silent"
    return grade_of(output.verdict, names_of(truth))


def files_of(run: str) -> list[Path]:
    """Return a run's traces."""
    return sorted((SAMPLE_LOGS / run).glob("*.pt.trace.json.gz"))


def hash_of(run: str) -> str:
    """Return the hash of a run's files."""
    digest = hashlib.sha256()
    for path in files_of(run):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_programs(path: Path) -> dict[str, ProgramOutput]:
    """Run every program on a file."""
    return {name: _run_program(name, path) for name in PROGRAMS}


def _run_program(name: str, path: Path) -> ProgramOutput:
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        output = PROGRAMS[name](plain, Path(folder))
        if output.has_crashed:
            return ProgramOutput(verdict=output.text.strip().splitlines()[-1], has_crashed=True)
        text = verdict_of(output).replace(folder, "…")
        return ProgramOutput(verdict=" ".join(text.split()))


def stored_results() -> dict[str, RunOutputs]:
    """Return the stored outputs by run."""
    if not STORED.exists():
        return {}
    return msgspec.json.decode(STORED.read_bytes(), type=dict[str, RunOutputs])


def current_results(stories: Stories) -> dict[str, RunOutputs]:
    """Run the programs on the runs that changed, and store and return all outputs."""
    current = {
        run: outputs
        for run, outputs in stored_results().items()
        if outputs.sha256 == hash_of(run) and outputs.outputs.keys() == PROGRAMS.keys()
    }
    new = [truth.run for truth in stories.recording if truth.run not in current]
    with ThreadPoolExecutor(PROCESS_COUNT) as pool:
        for run, outputs in zip(new, pool.map(run_on_files, new), strict=True):
            current[run] = outputs
            _store(current)  # keeps the outputs if this is interrupted
    results = {truth.run: current[truth.run] for truth in stories.recording}
    _store(results)
    return results


def run_on_files(run: str) -> RunOutputs:
    """Run every program on a run's files."""
    of_files = [run_programs(path) for path in files_of(run)]
    outputs = {name: tuple(of_file[name] for of_file in of_files) for name in PROGRAMS}
    return RunOutputs(sha256=hash_of(run), outputs=outputs)


def _store(results: dict[str, RunOutputs]) -> None:
    STORED.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
