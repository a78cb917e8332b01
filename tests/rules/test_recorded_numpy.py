"""NumPy in the step, recorded here: with stacks, without them, and with torch in its place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules.numpy_in_step import RULE
from undisturbed import undisturbed

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.recording
STEPS = 4
SIZE = 1024


def by_operators(x: Any) -> Any:
    array = x.numpy()
    for _ in range(20):
        array = array * 1.01 + 0.1  # leaves no function in the recording
    return torch.from_numpy(array)


def by_functions(x: Any) -> Any:
    import numpy as np

    return torch.from_numpy(np.percentile(x.numpy(), (5, 50, 95), axis=1))


def by_torch(x: Any) -> Any:
    for _ in range(20):
        x = x * 1.01 + 0.1
    return x


def said(path: Path, prepare: Callable[[Any], Any], *, stacks: bool) -> Outcome:
    """What the rule says of steps that prepare rows under a label, and multiply them."""
    rows = torch.rand(SIZE, SIZE)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, with_stack=stacks) as prof:
        for number in range(STEPS):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                with torch.profiler.record_function("prepare"):
                    prepare(rows)
                rows[:8] @ rows
    prof.export_chrome_trace(str(path / "trace.json"))
    [outcome] = rule_outcomes(trace_at(path / "trace.json"), [RULE])
    return outcome


@pytest.mark.parametrize(
    ("prepare", "function"),
    [(by_operators, "operators on arrays"), (by_functions, "percentile")],
    ids=["operators", "functions"],
)
def test_numpy_is_found_at_its_label_and_line(
    tmp_path: Path, prepare: Callable[[Any], Any], function: str
) -> None:
    outcome = undisturbed(
        lambda: said(tmp_path, prepare, stacks=True), lambda each: each.confidence == "high"
    )
    assert (outcome.severity, outcome.confidence) == ("critical", "high")
    assert "NumPy takes" in outcome.message
    assert "under the label prepare at " in outcome.message
    assert f"test_recorded_numpy.py({prepare.__code__.co_firstlineno})" in outcome.message
    assert outcome.message.endswith(f"most of it in {function}.")


def test_without_stacks_the_label_is_named_and_how_to_see_more(tmp_path: Path) -> None:
    outcome = undisturbed(
        lambda: said(tmp_path, by_operators, stacks=False),
        lambda each: each.severity == "critical",
    )
    assert (outcome.severity, outcome.confidence) == ("critical", "medium")
    assert outcome.message.startswith("Under the label prepare no operator of torch runs")
    assert outcome.fix is not None
    assert "with_stack=True" in outcome.fix.code


@pytest.mark.parametrize("stacks", [True, False])
def test_the_same_with_torch_is_no_fault(tmp_path: Path, *, stacks: bool) -> None:
    statuses = {"passed", "cannot-tell"}
    outcome = undisturbed(
        lambda: said(tmp_path, by_torch, stacks=stacks), lambda each: each.status in statuses
    )
    assert outcome.status in statuses
