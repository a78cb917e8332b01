"""The time of NCCL's kernels is never computing: the public traces in which torch-tb-profiler errs.

Since torch 1.12 a collective's kernels carry an `External id` that no `nccl:*` range has: the peer
takes them for kernels like others, and the host's ranges for communication.
"""

import gzip
import json
import logging
import tempfile
import warnings
from functools import cache
from typing import Any

import pytest

from loading import SHARED_TRACES, rows_of, trace_of
from stepscope.analyses.devices.kernel_breakdown import temporal_breakdown, type_statistics
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model.trace import Trace

pytestmark = [pytest.mark.peer, pytest.mark.every]
US = 1000
NCCL_KERNELS_US = {
    "hta/trace_diff/control/control.json.gz": 163_535,
    "hta/nccl_parser_config/nccl_data.json.gz": 46_876,
    "hta/trace_filter/sampled_rank-0.json.gz": 396_199,
    "hta/trace_filter/sampled_rank-1.json.gz": None,
}
"""Sums of durations, as measured without stepscope."""
CASES = pytest.mark.parametrize("name", NCCL_KERNELS_US)


@cache
def _document(name: str) -> dict[str, Any]:
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    with gzip.open(SHARED_TRACES / name) as file:
        found: dict[str, Any] = json.load(file)
    return found


def _is_nccl(event: dict[str, Any]) -> bool:
    return event.get("cat") == "kernel" and event["name"].startswith("nccl")


def _device(trace: Trace) -> Any:
    table = temporal_breakdown(trace)
    (row,) = rows_of(table[table["span"] == "device"])
    return row


@CASES
def test_all_of_nccls_kernels_are_communication(name: str) -> None:
    nccl = [event["dur"] for event in _document(name)["traceEvents"] if _is_nccl(event)]
    found = type_statistics(trace_of(document=_document(name))).set_index("type")
    assert found["total_ns"]["communication"] == pytest.approx(sum(nccl) * US, rel=1e-9)
    assert found["call_count"]["communication"] == len(nccl)
    measured = NCCL_KERNELS_US[name]
    assert measured is None or sum(nccl) == pytest.approx(measured, abs=1)


@CASES
def test_computing_takes_as_long_without_them(name: str) -> None:
    whole = _device(trace_of(document=_document(name)))
    others = [event for event in _document(name)["traceEvents"] if not _is_nccl(event)]
    without = _device(trace_of(document={**_document(name), "traceEvents": others}))
    assert without.communication_ns == 0
    assert without.compute_ns == whole.compute_ns
    assert whole.communication_ns > 0


@CASES
def test_torch_tb_profiler_takes_them_for_computing(name: str) -> None:
    pytest.importorskip("torch_tb_profiler")
    theirs = _their_mean_us(name)
    steps = step_breakdown(trace_of(document=_document(name)))
    ours = steps.mean_parts_ns
    both = (ours["kernel"] + ours["communication"]) / US
    assert theirs["kernel"] == pytest.approx(both, rel=1e-3)
    assert theirs["communication"] < 0.05 * ours["communication"] / US
    assert steps.parts_ns.sum() == steps.duration_ns.sum()


def _their_mean_us(name: str) -> dict[str, float]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        # its modules import in this order only
        import torch_tb_profiler.profiler  # noqa: F401
        from torch_tb_profiler.profiler.data import RunProfileData

        logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
        profile = RunProfileData.parse("worker", "1", str(SHARED_TRACES / name), folder)
    kernel, _, _, communication, *_ = profile.avg_costs.costs
    return {"kernel": kernel, "communication": communication}
