"""Commands read no file again whose summary is kept, and say the same as if they had."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loading import SAMPLE_LOGS
from logs import ROWS, write_trace
from stepscope.base.config import SummarySettings, settings
from stepscope.base.errors import UsageError
from stepscope.cli import cli

NAMES = ("rank0", "rank1", "rank2")
RECORDED = 1_700_000_000_000


def trace_in(folder: Path, worker: str, *, slower: int = 1, recorded: int = RECORDED) -> Path:
    """Write a recording whose steps are so many times as long."""
    rows = tuple([*row[:2], row[2] * slower, row[3] * slower, *row[4:]] for row in ROWS)
    rank = {"rank": int(worker[4:]), "world_size": len(NAMES)}
    path = folder / f"{worker}.{recorded}.pt.trace.json"
    return write_trace(path, rows, distributedInfo=rank)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three ranks in two spans, before and after a change."""
    for span, recorded in enumerate((RECORDED, RECORDED + 60_000), start=1):
        for number, name in enumerate(NAMES):
            trace_in(tmp_path / "log" / "run", name, slower=number + span, recorded=recorded)
    return tmp_path / "log"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.stderr)
    return result


def spoil(log: Path, *, but: tuple[Path, ...] = ()) -> None:
    """Make files such that whoever opens one would see it, and that nothing else tells."""
    for path in log.rglob("*.json"):
        if path not in but:
            status = path.stat()
            path.write_bytes(b"?" * status.st_size)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


QUESTIONS: dict[str, tuple[str, ...]] = {
    "advise": ("advise", "--format", "json"),
    "compare": ("compare", "--by", "span", "--format", "json"),
    "ranks": ("compare", "--by", "worker", "--span", "1", "--format", "json"),
    "scalars": ("scalars",),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_the_second_look_opens_no_trace_and_says_the_same(
    question: tuple[str, ...], log: Path, place: Path
) -> None:
    without = run(*question, log, "--summaries", "0")
    first = run(*question, log, "--summaries", place)
    spoil(log)
    second = run(*question, log, "--summaries", place)
    assert first.stdout == second.stdout == without.stdout
    assert first.stderr == second.stderr == without.stderr


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_one_question_is_answered_by_what_another_one_read(
    question: tuple[str, ...], log: Path, place: Path
) -> None:
    without = run(*question, log, "--summaries", "0")
    run("scalars" if question[0] == "advise" else "advise", log, "--summaries", place)
    spoil(log)
    assert run(*question, log, "--summaries", place).stdout == without.stdout


def test_only_what_changed_is_read(log: Path, place: Path) -> None:
    question = ("advise", "--format", "json")
    run(*question, log, "--summaries", place)
    changed = trace_in(log / "run", "rank1", slower=7)
    added = trace_in(log / "run", "rank2", slower=2, recorded=RECORDED + 120_000)
    without = run(*question, log, "--summaries", "0")
    spoil(log, but=(changed, added))
    assert run(*question, log, "--summaries", place).stdout == without.stdout


@pytest.mark.slow
def test_a_recording_that_becomes_another_span_is_read_again(log: Path, place: Path) -> None:
    question = ("advise", "--format", "json")
    run(*question, log, "--summaries", place)
    trace_in(log / "run", "rank0", recorded=RECORDED - 60_000)
    without = run(*question, log, "--summaries", "0")
    assert run(*question, log, "--summaries", place).stdout == without.stdout


def test_what_is_damaged_is_told_each_time(log: Path, place: Path) -> None:
    cut = log / "run" / f"rank1.{RECORDED}.pt.trace.json"
    cut.write_bytes(cut.read_bytes()[:-700])
    bad = trace_in(log / "run", "rank0", recorded=RECORDED + 120_000)
    bad.write_bytes(b"no trace")
    for question in (("advise", "--format", "json"), ("scalars",)):
        without = run(*question, log, "--summaries", "0")
        assert "rank1" in without.stderr + without.stdout
        assert str(bad) in without.stderr
        for _ in ("first", "second"):
            again = run(*question, log, "--summaries", place)
            assert (again.stdout, again.stderr) == (without.stdout, without.stderr)


@pytest.mark.slow
def test_a_real_run_of_ranks_says_the_same_in_processes_of_their_own(tmp_path: Path) -> None:
    """As users call it: pandas is imported without pyarrow there, which the store needs."""
    log = SAMPLE_LOGS / "ranks" / "one_slow_rank"

    def said(place: str | Path) -> bytes:
        command = [sys.executable, "-m", "stepscope", "advise", str(log), "--format", "json"]
        return subprocess.run(
            [*command, "--summaries", str(place)], check=True, capture_output=True
        ).stdout

    assert said("0") == said(tmp_path / "kept") == said(tmp_path / "kept")
    assert len(list((tmp_path / "kept").rglob("part-*.parquet"))) == 1


# --- the user's settings -----------------------------------------------------------------------


def test_other_settings_read_the_files_again(log: Path, place: Path) -> None:
    run("advise", log, "--summaries", place)
    spoil(log)
    result = CliRunner().invoke(
        cli, ["advise", str(log), "--summaries", str(place), "--ignore", "weak-step-coverage"]
    )
    assert result.exit_code == 2
    assert "6" in result.stderr


def tags_of(scalars: Result) -> set[str]:
    return {line.split()[0] for line in scalars.stdout.splitlines() if "/" in line}


@pytest.mark.slow
def test_comparisons_and_trends_follow_the_users_configuration(
    log: Path, place: Path, tmp_path: Path
) -> None:
    config = tmp_path / "stepscope.toml"
    found = json.loads(run("advise", log, "--format", "json").stdout)["runs"][0]["merged"]
    rule = next(each["outcome"]["rule"] for each in found if each["outcome"].get("claim"))
    config.write_text(f'ignore = ["{rule}"]\n')
    for kept in ("0", place, place):
        more = ("--summaries", kept)
        assert f"recoverable_share/{rule}" in run("scalars", log, *more).stdout
        assert rule not in run("scalars", log, *more, "--config", config).stdout
        compared = ("compare", log, "--by", "span", "--format", "json", *more)
        assert rule in run(*compared).stdout
        assert rule not in run(*compared, "--config", config).stdout


# --- where they are kept -----------------------------------------------------------------------


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own cache folder, and no word of the user where summaries go."""
    monkeypatch.setattr(
        "stepscope.summaries.store.user_cache_folder", lambda: str(tmp_path / "own")
    )
    monkeypatch.delenv("STEPSCOPE_SUMMARIES", raising=False)
    return tmp_path / "own"


def write_ranks(folder: Path, count: int) -> Path:
    for number in range(count):
        trace_in(folder / "run", f"rank{number}")
    return folder


@pytest.mark.parametrize(
    ("count", "more", "is_kept"),
    [
        (16, (), True),
        (15, (), False),
        (16, ("--no-cache",), False),
        (2, ("--summaries", "1"), True),
    ],
    ids=["large", "small", "refused", "wanted"],
)
def test_by_default_large_runs_are_kept_in_the_users_own_folder(
    count: int, more: tuple[str, ...], own_folder: Path, tmp_path: Path, *, is_kept: bool
) -> None:
    run("advise", write_ranks(tmp_path / "log", count), *more)
    assert len(list(own_folder.rglob("part-*.parquet"))) == is_kept


def test_the_place_is_said_by_an_option_or_in_the_environment() -> None:
    def place(given: str | None = None, cache: str | None = None, **said: str) -> SummarySettings:
        named = {f"STEPSCOPE_{name}": value for name, value in said.items()}
        return settings(named, summaries=given, cache=cache).summaries

    assert place() == place(cache="1") == SummarySettings(location="", least_count=16)
    assert place("0") == place(cache="0") == place(SUMMARIES="no") == place("0", SUMMARIES="/here")
    assert place("0").location is None
    assert place(CACHE="0") == place(cache="No") == place("0")
    assert place(CACHE="") == place(CACHE="0", cache="1") == place()
    assert place(SUMMARIES="1") == SummarySettings(location="")
    assert place(SUMMARIES="/here", cache="0") == SummarySettings(location="/here")
    assert place("s3://b/x", SUMMARIES="0") == SummarySettings(location="s3://b/x")
    assert place(SUMMARIES_SIZE="2G").bound_bytes == 2 * 2**30


def test_without_pyarrow_nothing_is_kept_and_a_place_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find: Callable[[str], object] = {"platformdirs": object()}.get
    monkeypatch.setattr("stepscope.base.config.find_spec", find)
    assert settings({}).summaries.location is None
    with pytest.raises(UsageError, match=r"needs pyarrow: pip install 'stepscope\[cache\]'"):
        settings({}, summaries="/here")


def test_ones_own_folder_needs_who_tells_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[[str], object] = {"pyarrow": object()}.get
    monkeypatch.setattr("stepscope.base.config.find_spec", find)
    assert settings({}).summaries.location is None
    assert settings({}, summaries="/here").summaries.location == "/here"
    with pytest.raises(UsageError, match=r"needs platformdirs: pip install 'stepscope\[cache\]'"):
        settings({}, summaries="1")
