"""The module table beside torch-tb-profiler's module view: the same where that is right."""

import gzip
import json
import logging
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tracebuild
from loading import SHARED_TRACES, trace_at, trace_of
from stepscope.analyses.core.links import links
from stepscope.analyses.host.module_table import module_table
from stepscope.model.trace import Trace

pytest.importorskip("torch_tb_profiler")
pytestmark = pytest.mark.peer
US = 1000
FIGURES = ["calls", "operators", "host", "host_self", "device", "device_self"]
"""In the order of torch-tb-profiler's `module_op.Stats`."""
HOST = FIGURES[:4]
H100 = "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz"
MI300 = "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
B200 = "tracelens/b200/eager_trace.json.gz"


def _flat(modules: Iterable[Any]) -> Iterable[Any]:
    for module in modules:
        yield module
        yield from _flat(module.children)


def _theirs(path: Path) -> pd.DataFrame:
    """The figures of each instance in us; the peer shows them wherever in the tree it is."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as cache:
        warnings.simplefilter("ignore")
        import torch_tb_profiler.profiler  # noqa: F401 (its modules import in this order only)
        from torch_tb_profiler.profiler import module_op
        from torch_tb_profiler.profiler.data import RunProfileData

        logging.getLogger("torch_tb_profiler").setLevel(logging.CRITICAL)
        data = RunProfileData.parse("worker", "1", str(path), cache)
        if data.is_pytorch_lightning:
            modules = module_op.aggegate_pl_module_view(data.tid2tree, data.events)
        else:
            modules = module_op.aggegate_module_view(data.tid2tree, data.events)
    # name, id, then the figures as `FIGURES` has them
    rows = {module.name: module[2:8] for module in _flat(modules)}
    return pd.DataFrame.from_dict(rows, orient="index", columns=FIGURES).sort_index()


def _ours(trace: Trace) -> pd.DataFrame:
    sums = (
        module_table(trace)
        .groupby("module")[
            [
                "call_count",
                "operator_count",
                "forward_host_total_ns",
                "forward_python_self_ns",
                "forward_device_total_ns",
                "forward_device_self_ns",
            ]
        ]
        .sum()
        .sort_index()
    )
    table = sums.set_axis(FIGURES, axis=1)
    return table.assign(**{figure: table[figure] / US for figure in FIGURES[2:]})


def _assert_same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    assert list(ours.index) == list(theirs.index)
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy(), rel=1e-6, abs=0.02), (
        (ours - theirs).abs().max()
    )


def _shared(name: str) -> Path:
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    return SHARED_TRACES / name


@pytest.mark.parametrize("name", [H100, MI300, B200])
def test_calls_operators_and_host_time_are_the_same(name: str) -> None:
    path = _shared(name)
    ours, theirs = _ours(trace_at(path)), _theirs(path)
    assert len(ours) > 200
    _assert_same(ours[HOST], theirs[HOST])


def test_it_finds_no_device_time_since_launches_are_filed_under_cuda_runtime() -> None:
    # version 0.4.3, the last, knows the category `Runtime` of 2021 only
    path = _shared(H100)
    ours, theirs = _ours(trace_at(path)), _theirs(path)
    assert (theirs["device"] == 0).all()
    assert float(ours["device"]["ViTModel_0"]) > 1000


def test_with_the_category_and_ids_that_it_looks_for_device_time_is_the_same(
    tmp_path: Path,
) -> None:
    path = _shared(H100)
    document = json.loads(gzip.decompress(path.read_bytes()))
    trace = trace_of(document=document)
    _write_owners(trace, document["traceEvents"])
    rewritten = tmp_path / "worker.1.pt.trace.json"
    rewritten.write_text(json.dumps(document))
    _assert_same(_ours(trace), _theirs(rewritten))


def _write_owners(trace: Trace, events: list[dict[str, Any]]) -> None:
    """Give runtime calls the `External id` of the operator around, and the category of 2021."""
    calls, runtime = trace.host_calls, trace.runtime_calls
    owners, numbers = links(trace).owner_of_call, calls["event"].to_numpy()
    for event, owner in zip(runtime["event"].tolist(), owners.tolist(), strict=True):
        events[event]["cat"] = "Runtime"
        around = events[int(numbers[owner])]
        number = around["args"]["External id"] if owner >= 0 else 0
        events[event]["args"]["External id"] = number


@pytest.mark.recording
def test_what_is_run_again_is_a_forward_call_to_it_and_not_here(tmp_path: Path) -> None:
    path = _recorded(tmp_path)
    table = module_table(trace_at(path)).set_index("module")
    ours, theirs = _ours(trace_at(path)), _theirs(path)
    again = table.index[table["rerun_count"] > 0]
    assert sorted(again) == ["Linear_1", "ReLU_0", "Sequential_1"]
    _assert_same(ours.drop(again), theirs.drop(again))
    assert (theirs["calls"][again] == 6).all()
    assert (table["call_count"][again] == 3).all()
    assert (table["rerun_count"][again] == 3).all()
    both_us = (table["forward_host_total_ns"] + table["rerun_host_total_ns"]) / US
    assert theirs["host"]["Sequential_1"] == pytest.approx(both_us["Sequential_1"], abs=0.02)
    assert (table["backward_host_self_ns"] > 0).sum() >= 3


def _recorded(folder: Path) -> Path:
    """Three steps of a model whose second part keeps no activations."""
    torch = pytest.importorskip("torch")
    checkpoint = pytest.importorskip("torch.utils.checkpoint")
    nn = torch.nn
    first, last = nn.Sequential(nn.Linear(8, 8)), nn.Linear(8, 2)
    middle = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, with_modules=True
    ) as profile:
        for _ in range(3):
            hidden = checkpoint.checkpoint(middle, first(torch.randn(4, 8)), use_reentrant=False)
            last(hidden).square().mean().backward()
    path = folder / "worker.1.pt.trace.json"
    profile.export_chrome_trace(str(path))
    return path


def test_lightnings_modules_are_the_same(tmp_path: Path) -> None:
    net, block = "[pl][module]my.Net: net", "[pl][module]my.Block: net.block"
    head = "[pl][module]torch.nn.modules.linear.Linear: net.block.head"
    rows = [
        ["cpu_op", "[pl][profile][Strategy]SingleDeviceStrategy.training_step", 0, 300],
        ["cpu_op", net, 10, 200],
        ["cpu_op", "aten::add", 20, 10],
        ["cpu_op", block, 40, 100],
        ["cpu_op", head, 50, 30],
        ["cpu_op", "aten::linear", 55, 20],
        ["cpu_op", "aten::addmm", 60, 10],
        ["cpu_op", head, 100, 20],
    ]
    document = tracebuild.document(rows=rows, metadata={"Framework": "pytorch-lightning"})
    path = tracebuild.write(document, tmp_path / "worker.1.pt.trace.json")
    ours, theirs = _ours(trace_at(path)), _theirs(path)
    assert list(ours.index) == ["net", "net.block", "net.block.head"]
    _assert_same(ours, theirs)
