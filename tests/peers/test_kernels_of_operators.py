"""Kernels of operators beside torch-tb-profiler's and HTA's, from the same files."""

import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from typing import Any

import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at
from peers import hta_peer
from stepscope.analyses.operators.operator_kernels import operator_kernels

pytestmark = [pytest.mark.peer, pytest.mark.slow]
US = 1000
RESNETS = shared_trace_names("kineto")
H100 = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
NO_OPERATOR = "CallTreeRoot"
"""What torch-tb-profiler calls the operator of a kernel that none launched."""
HTA_SCRIPT = """
import contextlib, json, sys
from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
from hta.trace_analysis import TraceAnalysis
CudaKernelAnalysis.visualize_aten_op_kernels_and_overhead = classmethod(lambda *_: None)
with contextlib.redirect_stdout(sys.stderr):
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
    found = CudaKernelAnalysis.get_aten_op_kernels_and_delay(analysis.t)[0]
print(found.to_json(orient="records"))
"""


def _theirs(name: str) -> Any:
    pytest.importorskip("torch_tb_profiler")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as cache:
        warnings.simplefilter("ignore")
        # its modules import in this order only
        import torch_tb_profiler.profiler  # noqa: F401
        from torch_tb_profiler.profiler.data import RunProfileData

        logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
        return RunProfileData.parse("worker", "1", str(SHARED_TRACES / name), cache)


@pytest.mark.parametrize("name", RESNETS[:1])
def test_every_operators_kernels_are_torch_tb_profilers(name: str) -> None:
    theirs: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for of in _theirs(name).kernel_list_groupby_name_op:
        sums = theirs[of.op_name, of.name]
        sums[0] += of.calls
        sums[1] += of.total_duration * US
    ours = {
        (row.operator or NO_OPERATOR, row.full_name): [row.event_count, row.total_ns]
        for row in rows_of(operator_kernels(trace_at(SHARED_TRACES / name)))
        if row.kind == "kernel"
    }
    assert ours == dict(theirs)
    assert len(ours) > 60


def _delays_of_hta(name: str) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Count and mean delays in ns of operators that launched one kernel a call, by its name."""
    hta_peer.require()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.defpath,
            "HOME": home,
            "PYTHONPATH": os.pathsep.join(map(str, hta_peer.SEARCHED)),
            "HTA_DISABLE_NS_ROUNDING": "1",
        }
        command = [sys.executable, "-W", "ignore", "-c", HTA_SCRIPT, str(SHARED_TRACES / name)]
        ran = subprocess.run(command, env=environment, cwd=home, capture_output=True, check=False)
    assert not ran.returncode, ran.stderr.decode()[-2000:]
    rows = json.loads(ran.stdout.splitlines()[-1])
    mixed = {
        kernel for row in rows if " -> " in row["kernel_sequence"] for kernel in _kernels_of(row)
    }
    return {
        kernels[0]: (
            row["occurrence_count"],
            row["avg_aten_op_launch_delay"] * US,
            row["avg_runtime_delay"] * US,
        )
        for row in rows
        if len(kernels := _kernels_of(row)) == 1 and kernels[0] not in mixed
    }


def _kernels_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["aten_op_name"], kernel) for kernel in row["kernel_sequence"].split(" -> ")]


@pytest.mark.skipif(not SHARED_TRACES.is_dir(), reason="needs the shared traces")
def test_delays_are_htas() -> None:
    theirs = _delays_of_hta(H100)
    ours = {
        (row.operator, row.full_name): row
        for row in rows_of(operator_kernels(trace_at(SHARED_TRACES / H100)))
    }
    assert len(theirs) > 20
    for key, (count, to_call, to_device) in theirs.items():
        row = ours[key]
        assert row.event_count == count, key
        assert row.mean_call_delay_ns == pytest.approx(to_call, abs=1), key
        assert row.mean_launch_delay_ns == pytest.approx(to_device, abs=1), key
