"""The rules on data loading against torch's own DataLoader, recorded on this machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.model.trace import Trace
from stepscope.rules import all_rules
from undisturbed import undisturbed
from waiting import LONG_SECONDS

pytestmark = [pytest.mark.recording, pytest.mark.slow]

RULES = [rule for rule in all_rules() if rule.id.startswith("dataloader-")]
SCRIPT = """
import sys, time
import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Slow(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, index):
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass
        return torch.zeros(64)

path, data, workers, persistent, stacks = sys.argv[1:]
torch.set_num_threads(1)
model = torch.nn.Linear(64, 4096)
dataset = Slow() if data == "slow" else TensorDataset(torch.zeros(32, 64))
loader = DataLoader(
    dataset, batch_size=8, num_workers=int(workers), persistent_workers=persistent == "True"
)
planned = schedule(wait=1, warmup=2, active=9)
with profile(
    activities=[ProfilerActivity.CPU], schedule=planned, with_stack=stacks == "True"
) as profiler:
    for epoch in range(3):
        for batch in loader:
            for _ in range(20):
                model(batch[0] if isinstance(batch, list) else batch).sum().backward()
            profiler.step()
profiler.export_chrome_trace(path)
"""


def said(
    folder: Path,
    data: str,
    *,
    workers: int,
    persistent: bool = False,
    stacks: bool = False,
    **statuses: str,
) -> dict[str, Outcome]:
    """What the rules say; `statuses` is what some are to say, and did where nothing disturbed."""

    def said_once() -> dict[str, Outcome]:
        outcomes = rule_outcomes(recorded(folder, data, workers, persistent, stacks), RULES)
        return {each.rule.removeprefix("dataloader-").replace("-", "_"): each for each in outcomes}

    found = undisturbed(
        said_once,
        lambda outcomes: all(outcomes[rule].status == statuses[rule] for rule in statuses),
    )
    assert {rule: found[rule].status for rule in statuses} == statuses
    return found


def recorded(folder: Path, *arguments: object) -> Trace:
    path = folder / "worker0.1.pt.trace.json"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=LONG_SECONDS)
    return trace_at(path)


@pytest.mark.parametrize("stacks", [True, False])
def test_workers_that_end_with_every_epoch_are_found(tmp_path: Path, *, stacks: bool) -> None:
    outcomes = said(tmp_path, "slow", workers=2, stacks=stacks, worker_respawn="found")
    found = outcomes["worker_respawn"]
    assert found.severity in ("warning", "critical")
    evidence = {each.label: each.value for each in found.evidence}
    assert evidence["Restarts in total"] == 2
    assert evidence.get("Processes started in total") == (4 if stacks else None)
    assert found.fix is not None
    assert "persistent_workers=True" in found.fix.code


@pytest.mark.parametrize("stacks", [True, False])
def test_workers_that_live_on_are_not(tmp_path: Path, *, stacks: bool) -> None:
    passed = {"worker_respawn": "passed", "no_workers": "passed"}
    said(tmp_path, "slow", workers=2, persistent=True, stacks=stacks, **passed)


def test_loading_in_the_process_is_found_but_for_a_data_set_in_memory(tmp_path: Path) -> None:
    said(tmp_path, "slow", workers=0, no_workers="found", worker_respawn="not-applicable")
    said(tmp_path, "in memory", workers=0, no_workers="rejected")
