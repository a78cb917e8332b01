"""What stepscope makes of recordings with Lightning's own names (sample_logs/lightning_fetch)."""

import pytest

from loading import SAMPLE_LOGS, trace_at
from stepscope.analyses.host.module_table import module_table
from stepscope.analyses.idle.data_stalls import data_stalls
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model.trace import Trace

FETCH = "[pl][profile][_TrainingEpochLoop].train_dataloader_next"
STEPS = 8


def recorded(run: str) -> Trace:
    [path] = (SAMPLE_LOGS / "lightning_fetch" / run).glob("*.pt.trace.json.gz")
    return trace_at(path)


@pytest.mark.parametrize(
    ("run", "iterator", "least", "most"),
    [
        ("no_workers", "_SingleProcessDataLoaderIter", 0.2, 0.5),
        ("workers_keep_up", "_MultiProcessingDataLoaderIter", 0, 0.05),
    ],
)
def test_lightnings_fetch_is_time_of_the_dataloader(
    run: str, iterator: str, least: float, most: float
) -> None:
    trace = recorded(run)
    assert (trace.host_calls["name"] == FETCH).sum() == STEPS
    breakdown = step_breakdown(trace)
    assert least < breakdown.mean_parts_ns["dataloader"] / breakdown.mean_ns < most
    stalls = data_stalls(trace)
    assert (len(stalls.rows), stalls.iterators) == (STEPS, (iterator,)), "a fetch is counted once"


def test_lightnings_modules_are_modules() -> None:
    table = module_table(recorded("no_workers"))
    assert set(table["origin"]) == {"Lightning"}
    top = table[table["depth"] == 0]
    assert list(zip(top["module"], top["class_name"], strict=True)) == [("net", "CifarResNet")]
    classes = table["class_name"].value_counts()
    assert (classes["BasicBlock"], classes["Conv2d"]) == (3, 9)
    assert set(table["call_count"]) == {STEPS}
