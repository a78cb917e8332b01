"""Code compiled by torch.compile, recorded here: what compiles again or breaks, and what does not.

The backend is `aot_eager`: dynamo's records are the same, and no compiler of C++ is needed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules.conv_bias_before_bn import RULE as BIASES
from stepscope.rules.graph_breaks import RULE as BREAKS
from stepscope.rules.recompile_in_loop import RULE as RECOMPILATIONS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.recording
STEPS = 6
WARM_UP = 2


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def recorded(path: Path, step: Callable[[int], object], *, with_stack: bool = False) -> Path:
    """Record some steps behind a warm-up; each is told its number, from 0."""
    for number in range(WARM_UP):
        step(number)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack
    ) as prof:
        for number in range(STEPS):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step(WARM_UP + number)
    prof.export_chrome_trace(str(path))
    return path


def said(path: Path, rule: object) -> Outcome:
    [outcome] = rule_outcomes(trace_at(path), [rule])  # type: ignore[list-item]
    return outcome


def training(sizes: Callable[[int], int], *, dynamic: bool | None) -> Callable[[int], object]:
    """Return a step of a compiled layer, on batches of these sizes."""
    layer = torch.nn.Linear(16, 16)
    compiled = torch.compile(layer, backend="aot_eager", dynamic=dynamic)
    return lambda number: compiled(torch.ones(sizes(number), 16)).sum().backward()


def test_a_batch_of_another_size_in_each_step_is_compiled_again(tmp_path: Path) -> None:
    step = training(lambda number: 8 + number, dynamic=False)
    outcome = said(recorded(tmp_path / "sizes.json", step), RECOMPILATIONS)
    assert outcome.status == "found"
    assert outcome.severity in {"warning", "critical"}  # a slow first step lowers its confidence
    assert "dimension 0 of an input changes (10, 11, 12, 13, 14" in outcome.message
    assert outcome.fix is not None
    assert "mark_dynamic(batch, 0)" in outcome.fix.code


def test_a_dynamic_dimension_is_compiled_once(tmp_path: Path) -> None:
    step = training(lambda number: 8 + number, dynamic=True)
    assert said(recorded(tmp_path / "dynamic.json", step), RECOMPILATIONS).status == "passed"


def test_batches_of_one_size_are_compiled_once(tmp_path: Path) -> None:
    path = recorded(tmp_path / "one.json", training(lambda _: 8, dynamic=None))
    assert said(path, RECOMPILATIONS).status == "passed"
    assert said(path, BREAKS).status == "passed"


def test_the_second_size_makes_the_dimension_dynamic_and_that_is_all(tmp_path: Path) -> None:
    step = training(lambda number: 8 + (number > WARM_UP) * (number - WARM_UP), dynamic=None)
    outcome = said(recorded(tmp_path / "second.json", step), RECOMPILATIONS)
    assert outcome.status == "rejected"
    assert "1 recompilation takes" in outcome.message


def test_a_value_that_counts_is_no_shape(tmp_path: Path) -> None:
    layer = torch.nn.Linear(16, 16)
    compiled = torch.compile(
        lambda rows, mode: layer(rows) * len(mode), backend="aot_eager", dynamic=False
    )
    path = recorded(
        tmp_path / "value.json",
        lambda number: compiled(torch.ones(8, 16), "x" * number).sum().backward(),
    )
    outcome = said(path, RECOMPILATIONS)
    assert outcome.status == "found"
    assert "no input changes its shape" in outcome.message


def test_lines_that_break_a_graph_are_named(tmp_path: Path) -> None:
    first, second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(rows: Any) -> Any:
        rows = first(rows)
        print(len(rows))
        rows = second(rows)
        if rows.sum().item() > 1e9:
            rows = rows * 2
        return rows.relu()

    compiled = torch.compile(forward, backend="aot_eager")
    with torch.no_grad():
        path = recorded(
            tmp_path / "breaks.json", lambda _: compiled(torch.ones(8, 16)), with_stack=True
        )
    outcome = said(path, BREAKS)
    start = forward.__code__.co_firstlineno
    assert outcome.status == "found"
    assert outcome.message.startswith("2 graph breaks per step")
    assert [line.line - start for line in outcome.locations] == [2, 4]
    assert outcome.fix is not None
    assert "capture_scalar_outputs" in outcome.fix.code


@pytest.mark.parametrize(("has_bias", "status"), [(True, "found"), (False, "passed")])
def test_a_bias_before_a_batch_norm(tmp_path: Path, *, has_bias: bool, status: str) -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, bias=has_bias), torch.nn.BatchNorm2d(8), torch.nn.ReLU()
    )
    path = recorded(
        tmp_path / "bias.json", lambda _: model(torch.ones(2, 3, 8, 8)).sum().backward()
    )
    outcome = said(path, BIASES)
    assert outcome.status == status
    if outcome.fix:
        assert "nn.Conv2d(3, 8, kernel_size=3, bias=False)" in outcome.fix.code
