"""What tests of every part share: where things are, and what this machine has."""

import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pandas as pd
import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_LOGS = ROOT / "sample_logs"
SHARED_TRACES = ROOT.parent / "shared" / "traces"
HERE = Path(__file__).parent
FRAME_FOLDERS = ("analyses", "health")
"""Folders of tests that all read pandas frames; files elsewhere are marked `frames`."""
QUARANTINE = HERE / "quarantine.txt"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

TAKES_LONG = ("browser", "peer", "recording", "slow")
"""Markers of tests in files that are begun first, so that none of them is alone at the end."""
OF_A_RULE = re.compile(r"tests/rules/test_(?:rules|mutants)\.py::.*\[(\w+)")
"""What is tested of one rule: the traces of its cases are made once where it is in one process."""

ALIKE = re.compile(r"num_workers_4/|1623143566756|sampled_rank-1|event_sync_multi|/mi300/")
"""Real traces that are recorded as others are."""
TRUTHS = ("test_samples.py", "test_story_advice.py", "test_scenarios.py", "rules")
"""Tests of what is true of each sample: all samples count. Others test laws, of one sample of each
scenario; of all in `make test-every`."""

# Busy cores make examples slow, also to draw, without a defect. The same examples are drawn each
# time, so that only a change makes a test fail: few in `make test`, all in `make test-all`, and new
# ones with STEPSCOPE_HYPOTHESIS=search.
PATIENT: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("stepscope", **PATIENT, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("brief", **PATIENT, derandomize=True, max_examples=15)
hypothesis.settings.register_profile("search", **PATIENT, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("STEPSCOPE_HYPOTHESIS", "stepscope"))

os.environ["STEPSCOPE_SUMMARIES"] = "0"
"""Nothing of what tests read is left in the user's own folder; those of summaries name another."""
os.environ["OMP_NUM_THREADS"] = "1"
"""torch's threads would spin for each other: a core belongs to one of pytest's processes."""


class ByFile(LoadScopeScheduling):  # type: ignore[misc] # it says no types
    """Give a process whole files, as `--dist loadfile` does; of the rules' cases, whole rules."""

    def _split_scope(self, nodeid: str) -> str:
        found = OF_A_RULE.match(nodeid)
        return f"rule {found[1]}" if found else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Have tests shared out by file, in the order in which they are collected."""
    config.option.loadscopereorder = False  # by the number of tests, which says nothing of the time
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of frames, skip the quarantined ones, and begin with the files that take long."""
    reasons = quarantined()
    for item in items:
        if item.path.relative_to(HERE).parts[0] in FRAME_FOLDERS:
            item.add_marker(pytest.mark.frames)
        if is_repeated(item):
            item.add_marker(pytest.mark.every)
        for name, reason in reasons.items():
            if item.nodeid.startswith(name):
                item.add_marker(pytest.mark.skip(reason=f"quarantined: {reason}"))
    long = {item.path for item in items if any(map(item.get_closest_marker, TAKES_LONG))}
    items.sort(key=lambda item: item.path not in long)


def is_repeated(item: pytest.Item) -> bool:
    """Return whether a law is tested of a trace that is like another one of the same test."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.path.relative_to(HERE).parts[0] in TRUTHS:
        return False
    return any(is_like_another(value) for value in callspec.params.values())


def is_like_another(value: object) -> bool:
    """Return whether a parameter is a trace like another one: a path, or its end."""
    if not isinstance(value, str | Path):
        return False
    path = Path(value)
    if path.is_relative_to(SHARED_TRACES) or (isinstance(value, str) and value.endswith(".gz")):
        return bool(ALIKE.search(str(path)))
    runs = sample_runs()
    name = path.relative_to(SAMPLE_LOGS) if path.is_relative_to(SAMPLE_LOGS) else path
    return runs.get("/".join(name.parts[:2]), False)


@cache
def sample_runs() -> dict[str, bool]:
    """Return the names of the samples' runs, and whether another run of its scenario precedes."""
    folders = sorted({path.parent for path in SAMPLE_LOGS.rglob("*.pt.trace.json.gz")})
    names = [folder.relative_to(SAMPLE_LOGS).as_posix() for folder in folders]
    scenarios = [name.partition("/")[0] for name in names]
    return {name: scenarios.index(scenarios[row]) < row for row, name in enumerate(names)}


def quarantined() -> dict[str, str]:
    """Return the tests that wait to be mended, with the reason: `start of a node id  # reason`."""
    lines = QUARANTINE.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("  # ") for line in lines if line and not line.startswith("#"))
    return {node: reason for node, _, reason in pairs}


def pytest_report_header() -> str:
    """Say which pandas is tested: `make test` runs the core under two."""
    return f"pandas {pd.__version__} from {Path(pd.__file__).parents[1]}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; the test is skipped where there is none."""
    named = os.environ.get("STEPSCOPE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set STEPSCOPE_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of real traces from many machines, which lies beside a developer's clone."""
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    return SHARED_TRACES
