"""Operators of graphs that an H200 replayed, compared with those of the same step without a graph.

`eager` runs the step that `replayed` and `several` replay, so that each of its kernels has its
operator by its launch. It runs batch 16; the other batches differ in the first dimension alone.
"""

import re
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from loading import SAMPLE_LOGS, rows_of, trace_at
from stepscope.analyses.compiled.graph_operators import graph_kernels, graph_operators
from stepscope.analyses.core.graph_launches import graph_table
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.devices.roofline import roofline, roofline_kernels
from stepscope.analyses.host.module_table import module_table
from stepscope.analyses.operators.graph_captures import GraphPart, graph_part
from stepscope.analyses.operators.operator_categories import operator_categories
from stepscope.analyses.operators.operator_table import REPLAYED, Grouping, operator_table
from stepscope.analyses.operators.replayed_operators import NOT_ATTRIBUTED
from stepscope.model.trace import Trace

pytestmark = pytest.mark.frames

SAMPLES = SAMPLE_LOGS / "graph_replay_cuda"
BATCH = 16
BATCHES = [4, 8, 16]
LEAST_ATTRIBUTED = 0.8
TEXTS = ["operator", "module", "input_dims"]


@cache
def parts(run: str) -> tuple[GraphPart, ...]:
    return tuple(graph_part(trace_at(path)) for path in sorted((SAMPLES / run).iterdir()))


def truth(batch: int = BATCH) -> pd.DataFrame:
    """The names, operators, modules and shapes of a step's kernels, by their launches."""
    [of] = parts("eager")
    eager = pd.DataFrame({name: getattr(of.eager, name) for name in ("name", *TEXTS)})
    steps = len(trace_at(*(SAMPLES / "eager").iterdir()).steps)
    size = len(eager) // steps
    step = eager[:size]
    assert all(
        eager[at : at + size].reset_index(drop=True).equals(step)
        for at in range(0, len(eager), size)
    )
    dims = step["input_dims"].map(lambda text: re.sub(rf"\b{BATCH}\b", str(batch), text))
    return step.assign(input_dims=dims)


def attributed(kernels: pd.DataFrame) -> float:
    """The fraction of the time whose operator and shapes are attributed."""
    is_attributed = kernels["operator"].notna() & kernels["input_dims"].notna()
    return float(kernels["total_ns"][is_attributed].sum() / kernels["total_ns"].sum())


def wrong(kernels: pd.DataFrame, expected: pd.DataFrame, *texts: str) -> list[tuple[object, ...]]:
    """The nodes with a text that is not the expected one, nor left out."""
    assert len(kernels) == len(expected)
    return [
        (position, name, text, other)
        for name in texts
        for position, (text, other) in enumerate(zip(kernels[name], expected[name], strict=True))
        if text is not None and text != other
    ]


@pytest.mark.parametrize("span", [0, 1])
def test_replays_have_the_operators_of_the_same_step_without_a_graph(span: int) -> None:
    """The second span holds replays alone: their capture is in the first."""
    kernels = graph_kernels(parts("replayed"))
    of_span = kernels[: len(kernels) // 2] if span == 0 else kernels[len(kernels) // 2 :]
    assert list(of_span["full_name"]) == list(truth()["name"])
    assert wrong(of_span, truth(), *TEXTS) == []
    assert attributed(of_span) >= LEAST_ATTRIBUTED
    assert set(of_span["matched_by"]) == {"order"}


@pytest.mark.parametrize("graph", [0, 1, 2])
def test_graphs_of_three_batches_have_the_shapes_of_their_captures(graph: int) -> None:
    kernels = graph_kernels(parts("several"))
    of_graph = kernels[kernels["graph"] == graph]
    assert wrong(of_graph, truth(BATCHES[graph]), "operator", "input_dims") == []
    assert attributed(of_graph) >= LEAST_ATTRIBUTED
    assert set(of_graph["capture_count"]) == {1}
    products = graph_operators(parts("several")).query("graph == @graph and flop_count > 0")
    parameters = 8 * (4 + 3 * 4) * 2048**2 + 4096 * 2048
    matrices = products[products["operator"] == "aten::mm"]
    assert matrices["flop_count"].sum() == 2 * 3 * BATCHES[graph] * parameters


def test_graphs_of_equal_kernel_names_are_told_apart_by_their_grids() -> None:
    [path] = (SAMPLES / "several").iterdir()
    assert list(graph_table(trace_at(path))["replay_count"]) == [3, 3, 3]


@pytest.mark.parametrize("graph", [0, 1, 2])
@pytest.mark.parametrize("capture", [0, 1, 2])
def test_the_capture_of_another_batch_gives_no_shapes(capture: int, graph: int) -> None:
    [of] = parts("several")
    alone = replace(of, captures=(of.captures[capture],), graphs=(of.graphs[graph],))
    kernels = graph_kernels([alone])
    assert wrong(kernels, truth(BATCHES[graph]), "operator", "input_dims") == []
    assert kernels["operator"].notna().all()
    assert kernels["input_dims"].notna().all() == (capture == graph)
    has_work = graph_operators([alone])["flop_count"].notna()
    assert has_work.any() == (capture == graph)


def test_without_a_capture_an_eager_pass_of_the_run_has_the_operators() -> None:
    _, replays = parts("replayed")
    assert graph_kernels([replays])["operator"].isna().all()
    kernels = graph_kernels([replays, *parts("eager")])
    assert wrong(kernels, truth(), *TEXTS) == []
    assert attributed(kernels) >= LEAST_ATTRIBUTED
    assert set(kernels["matched_by"]) == {"eager"}


def test_an_eager_pass_of_another_batch_is_not_matched() -> None:
    [several] = parts("several")
    for graph, is_matched in zip(several.graphs, [False, False, True], strict=True):
        replays = replace(several, captures=(), graphs=(graph,))
        kernels = graph_kernels([replays, *parts("eager")])
        assert kernels["operator"].notna().all() == is_matched
        assert kernels["operator"].notna().any() == is_matched


def trace(run: str, span: int = 0) -> Trace:
    return trace_at(sorted((SAMPLES / run).iterdir())[span])


def operators(of: Trace, kind: str, by: Grouping = "name") -> pd.DataFrame:
    """The operators of a kind that launched device work, by their names and shapes or modules."""
    table = operator_table(of, by)
    return table[(table["kind"] == kind) & (table["device_self_ns"] > 0)]


@pytest.mark.parametrize(("by", "label"), [("shape", "input_dims"), ("module", "module")])
def test_replayed_operators_have_the_calls_and_work_of_the_same_steps(
    by: Grouping, label: str
) -> None:
    """The table of the replays is that of six steps without a graph, without host time.

    Every second call of `aten::where` calls another one, which launches the kernel.
    """
    keys = ["name", label]
    replayed = operators(trace("replayed"), REPLAYED, by).set_index(keys).sort_index()
    expected = operators(trace("eager"), "operator", by).set_index(keys).sort_index()
    assert replayed.index.equals(expected.index)
    launching = expected["call_count"] // [
        2 if name == "aten::where" else 1 for name, _ in expected.index
    ]
    assert list(replayed["call_count"]) == list(launching)
    is_product = replayed["flops"].notna()
    assert list(replayed["flops"][is_product]) == list(expected["flops"][is_product])
    assert is_product[["aten::mm"]].all()
    assert list(replayed["matrix_unit_self_share"] > 0.5) == list(
        expected["matrix_unit_self_share"] > 0.5
    )
    ratio = replayed["device_self_ns"].sum() / expected["device_self_ns"].sum()
    assert ratio == pytest.approx(1, abs=0.05)
    assert replayed["host_self_ns"].sum() == 0


@pytest.mark.parametrize(("run", "span"), [("replayed", 0), ("replayed", 1), ("several", 0)])
def test_no_kernel_counts_twice(run: str, span: int) -> None:
    of = trace(run, span)
    for by in ("name", "shape"):
        assert (
            operator_table(of, by)["device_self_ns"].sum() == of.device_events["duration_ns"].sum()
        )
    categories = operator_categories(of)
    assert categories["device_self_ns"].sum() == of.device_events["duration_ns"].sum()
    assert kernel_table(of, "launch")["total_ns"].sum() == of.kernels["duration_ns"].sum()


def test_kernels_of_a_graph_have_the_operators_of_the_same_kernels_without_a_graph() -> None:
    columns = ["full_name", "operator", "grid", "block", "call_count"]
    replayed, eager = (kernel_table(trace(run), "launch")[columns] for run in ("replayed", "eager"))
    assert set(eager.itertuples(index=False)) <= set(replayed.itertuples(index=False))


def test_modules_have_the_device_time_of_the_replays_that_the_same_calls_have_without_a_graph() -> (
    None
):
    replayed, eager = (module_table(trace(run)).set_index("path") for run in ("replayed", "eager"))
    assert set(eager.index) == set(replayed.index)
    in_replays, launched = (
        of[name].reindex(eager.index)
        for of, name in (
            (replayed, "replayed_device_total_ns"),
            (eager, "forward_device_total_ns"),
        )
    )
    assert list(in_replays > 0) == list(launched > 0)
    assert in_replays["Decoder_0"] == pytest.approx(launched["Decoder_0"], rel=0.05)
    assert (eager["replayed_device_total_ns"] == 0).all()
    assert (replayed["forward_device_total_ns"] == 0).all()


def test_the_roofline_of_replays_is_that_of_the_same_steps_without_a_graph() -> None:
    """The trace of the replays has two more kernels, which the capture ran outside the graph."""
    keys = ["name", "input_dims", "data_type"]
    replayed, eager = (
        roofline(trace(run)).set_index(keys).sort_index() for run in ("replayed", "eager")
    )
    others = replayed.index.difference(eager.index)
    assert list(others.get_level_values("name")) == ["aten::fill_"]
    replayed = replayed.loc[eager.index]
    exact = ["category", "call_count", "flop_count", "moved_bytes", "bound", "note"]
    assert replayed[exact].equals(eager[exact])
    products = eager["flop_count"] > 1e9
    ratio = replayed["kernel_ns"][products] / eager["kernel_ns"][products]
    assert ratio.between(0.9, 1.1).all()
    assert ratio.size == 6
    kernels = roofline_kernels(trace("replayed"), replayed[products].reset_index())
    events = trace("replayed").device_events
    assert events["duration_ns"][kernels].sum() == replayed["kernel_ns"][products].sum()


def test_a_step_of_replays_has_the_operators_of_the_capture_before_it() -> None:
    of = trace("replayed")
    third = of.steps.iloc[2]
    step = slice_trace(of, int(third["start_ns"]), int(third["end_ns"]))
    in_step, in_all = operators(step, REPLAYED), operators(of, REPLAYED)
    assert dict(zip(in_all["name"], in_all["call_count"], strict=True)) == {
        name: 6 * calls for name, calls in zip(in_step["name"], in_step["call_count"], strict=True)
    }


def test_replays_without_a_recording_in_their_trace_are_not_attributed() -> None:
    of = trace("replayed", 1)
    [row] = rows_of(operators(of, REPLAYED))
    assert (row.name, row.call_count) == (NOT_ATTRIBUTED, 6)
    assert row.device_self_ns == of.device_events["duration_ns"].sum()
    assert set(kernel_table(of, "launch")["operator"]) == {NOT_ATTRIBUTED}
    assert NOT_ATTRIBUTED not in set(operator_table(trace("several"))["name"])
