"""What HTA's TraceDiff says of device work in two recordings, beside what is compared here.

HTA compares one iteration of each by name: how often each ran, and for how long in all. Here every
step is a sample; that of a step is HTA's, and HTA's lists are what the rows say of calls.
"""

import gzip
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loading import SHARED_TRACES, trace_at
from stepscope.base.step_range import StepRange
from stepscope.comparison import compare
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.selected_steps import select_steps

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv"
SEARCHED = (ENVIRONMENT / "peers", ENVIRONMENT / "pandas-2.2.3")
FILES = (
    "kineto/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
    "kineto/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
)
ASK_HTA = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff

traces = [LabeledTrace(folder, trace_dir=folder) for folder in sys.argv[1:]]
answer = {"steps": []}
for trace in traces:
    steps = {}
    for iteration in trace.iterations():
        ops = trace.extract_ops(iteration=iteration, device_type=DeviceType.GPU)
        named = trace.get_ops_summary(ops).groupby("name")[["counts", "total_duration"]].sum()
        steps[iteration] = {name: row.tolist() for name, row in named.iterrows()}
    answer["steps"].append(steps)
second = traces[0].iterations()[1]
answer["diff"] = TraceDiff.ops_diff(
    *traces, control_iteration=second, test_iteration=second, device_type=DeviceType.GPU
)
print(json.dumps(answer))
"""
pytestmark = [pytest.mark.peer, pytest.mark.every]


@pytest.fixture(scope="module")
def hta(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not all(path.is_dir() for path in (*SEARCHED, SHARED_TRACES)):
        pytest.skip("HTA is not installed in .venv, or ../shared/traces is not there")
    folders = []
    for name in FILES:
        document = json.loads(gzip.decompress((SHARED_TRACES / name).read_bytes()))
        folder = tmp_path_factory.mktemp("hta")
        rank = {"distributedInfo": {"rank": 0}}  # without it HTA reads nothing
        (folder / "trace.json").write_text(json.dumps(document | rank))
        folders.append(str(folder))
    environment = {
        "PATH": os.defpath,
        "HOME": folders[0],
        "PYTHONPATH": os.pathsep.join(map(str, SEARCHED)),
        "HTA_DISABLE_NS_ROUNDING": "1",
    }
    command = [sys.executable, "-W", "ignore", "-c", ASK_HTA, *folders]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def samples() -> tuple[Sample, ...]:
    return tuple(sample(trace_at(SHARED_TRACES / name)) for name in FILES)


def test_each_steps_device_work_is_htas(hta: Any) -> None:
    for theirs, ours in zip(hta["steps"], samples(), strict=True):
        found: dict[str, dict[str, list[float]]] = {}
        work = ours.device_work
        names = work.keys["name"].tolist()
        rows = zip(work.step, work.key, work.call_count, work.device_ns, strict=True)
        for step, key, calls, device_ns in rows:
            of_step = found.setdefault(str(ours.step_numbers[step]), {})
            sums = of_step.setdefault(names[key], [0, 0])
            sums[0] += int(calls)
            sums[1] += int(device_ns) / 1000
        assert found == theirs


def test_added_gone_and_called_more_or_less_are_htas(hta: Any) -> None:
    """HTA's lists are of the second iteration of each, ours of all steps and of that one."""
    _assert_kinds_are_htas(hta, *([each] for each in samples()))
    second = samples()[0].step_numbers[1]
    step = StepRange(second, second)
    _assert_kinds_are_htas(hta, *(select_steps([each], step) for each in samples()))


def _assert_kinds_are_htas(hta: Any, before: list[Sample], after: list[Sample]) -> None:
    calls: dict[str, list[float]] = {}
    for row in compare("a", before, "b", after).device_work:
        if row.kind == "rest":
            continue
        sums = calls.setdefault(row.name, [0.0, 0.0])
        sums[0] += row.calls.before
        sums[1] += row.calls.after
    ours = {name: _kind(*counts) for name, counts in calls.items()}
    theirs = {name: kind for kind, names in hta["diff"].items() for name in names}
    assert len(ours) > 30
    assert ours == {name: theirs[name] for name in ours}
    left_out = set(theirs) - set(ours)
    assert {theirs[name] for name in left_out} <= {"unchanged", "increased", "decreased"}


def _kind(before: float, after: float) -> str:
    if not before or not after:
        return "deleted" if before else "added"
    return "unchanged" if before == after else "increased" if after > before else "decreased"
