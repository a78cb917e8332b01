"""What other programs say of the same recordings: torch-tb-profiler, gpu-idle, fournex, pytscope.

Each is run as its users would, in a process of its own (see `peers.young_advisers`, whose words
grade them). That takes minutes, so what they said is kept in peers.json beside this file, with the
hash of what was read: only recordings that changed are asked about again. Grades are not kept: they
follow from what was said and from what is true.
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

KEPT = Path(__file__).with_name("peers.json")
AT_ONCE = 2
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


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a program said of one file."""

    verdict: str
    has_crashed: bool = False


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What all programs said of one run."""

    sha256: str
    """Of its files."""
    said: dict[str, tuple[Answer, ...]]
    """Program to what it said of each file, in the order of their names."""


def torch_tb_profiler(trace: Path, folder: Path) -> Output:
    """Run torch-tb-profiler's reading of a file, and return its recommendations."""
    output = run_program(TORCH_TB_PROFILER, str(trace), str(folder))
    return Output(text=re.sub(r"<[^>]*>", "", output.text), has_crashed=output.has_crashed)


PROGRAMS: Mapping[str, Callable[[Path, Path], Output]] = MappingProxyType(
    {f"torch-tb-profiler {version('torch-tb-profiler')}": torch_tb_profiler, **YOUNG}
)

# By what words a program names the cause that a rule of stepscope names; for others, the words of
# the rule's name. They are generous: a word in passing counts.
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
    """Return the pattern of the words that are right of a run."""
    if truth.healthy:
        return "|".join((WELL, *map(_words, truth.also)))
    return "|".join(_words(cause) for cause in truth.causes) or "(?!)"


def _words(rule: str) -> str:
    return WORDS.get(rule, re.escape(rule).replace(r"\-", ".?"))


def grade(answers: tuple[Answer, ...], truth: Recording) -> Grade:
    """Return the grade of what was said of a run's files: of a fault the best, else the worst."""
    grades = [_grade(each, truth) for each in answers]
    if truth.healthy:
        return next((each for each in ("wrong", "crash", "silent") if each in grades), "right")
    return min(grades, key=BEST_FIRST.index)


def _grade(answer: Answer, truth: Recording) -> Grade:
    if answer.has_crashed:
        return "crash"
    if not truth.healthy and answer.verdict == "No recommendation":
        return "silent"
    return grade_of(answer.verdict, names_of(truth))


def files_of(run: str) -> list[Path]:
    """Return a run's recordings."""
    return sorted((SAMPLE_LOGS / run).glob("*.pt.trace.json.gz"))


def hash_of(run: str) -> str:
    """Return the hash of a run's files."""
    digest = hashlib.sha256()
    for path in files_of(run):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def ask(path: Path) -> dict[str, Answer]:
    """Ask every program about a file."""
    return {name: _ask(name, path) for name in PROGRAMS}


def _ask(name: str, path: Path) -> Answer:
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        said = PROGRAMS[name](plain, Path(folder))
        if said.has_crashed:
            return Answer(verdict=said.text.strip().splitlines()[-1], has_crashed=True)
        text = verdict_of(said).replace(folder, "…")
        return Answer(verdict=" ".join(text.split()))


def kept() -> dict[str, Answers]:
    """Return what was kept, by run."""
    if not KEPT.exists():
        return {}
    return msgspec.json.decode(KEPT.read_bytes(), type=dict[str, Answers])


def brought_up_to_date(stories: Stories) -> dict[str, Answers]:
    """Ask about the runs that changed since they were asked about, and keep the answers."""
    known = {
        run: answers
        for run, answers in kept().items()
        if answers.sha256 == hash_of(run) and answers.said.keys() == PROGRAMS.keys()
    }
    new = [each.run for each in stories.recording if each.run not in known]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for run, answers in zip(new, pool.map(ask_about, new), strict=True):
            known[run] = answers
            _keep(known)  # so that what was asked is not lost when it is ended
    told = {each.run: known[each.run] for each in stories.recording}
    _keep(told)
    return told


def ask_about(run: str) -> Answers:
    """Ask every program about a run's files."""
    of_files = [ask(path) for path in files_of(run)]
    said = {name: tuple(each[name] for each in of_files) for name in PROGRAMS}
    return Answers(sha256=hash_of(run), said=said)


def _keep(answers: dict[str, Answers]) -> None:
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(answers), indent=1) + b"\n")
