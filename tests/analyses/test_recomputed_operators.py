"""Operators that activation checkpointing runs again, by operator."""

from pathlib import Path

import pytest

from loading import rows_of, trace_at, trace_of
from stepscope.analyses.host.recomputed_forward import recomputed_operators

BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"


@pytest.mark.frames
def test_recomputed_calls_are_split_from_the_others_with_their_device_work() -> None:
    made = {"Sequence number": 3, "Fwd thread id": 0}
    node = {"Sequence number": 3, "Fwd thread id": 1}
    again = {"Sequence number": 9, "Fwd thread id": 0}
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 500],
            ["cpu_op", "aten::linear", 0, 20, made],
            ["cpu_op", "aten::addmm", 2, 16, made],
            ["cuda_runtime", "cudaLaunchKernel", 4, 2, {"correlation": 1}],
            ["cpu_op", BACKWARD, 100, 100, node],
            ["cpu_op", "AddmmBackward0", 110, 80, node],
            ["user_annotation", "block", 115, 30],
            ["cpu_op", "aten::linear", 120, 20, again],
            ["cpu_op", "aten::addmm", 122, 16, again],
            ["cuda_runtime", "cudaLaunchKernel", 124, 2, {"correlation": 2}],
            ["cpu_op", "aten::mm", 150, 20],
            ["cuda_runtime", "cudaLaunchKernel", 152, 2, {"correlation": 3}],
            ["kernel", "gemm", 300, 30, {"correlation": 1}],
            ["kernel", "gemm", 340, 10, {"correlation": 2}],
            ["kernel", "gemm", 360, 50, {"correlation": 3}],
        ]
    )
    found = [
        (row.operator, row.call_count, row.other_call_count, row.host_self_ns, row.device_self_ns)
        for row in rows_of(recomputed_operators(trace))
    ]
    assert found == [
        ("aten::addmm", 1, 1, 14_000, 10_000),
        ("aten::linear", 1, 1, 4_000, 0),
    ]
    shares = recomputed_operators(trace)[["device_share", "recomputed_share"]]
    assert shares.iloc[0].tolist() == [0.25, 1.0]


@pytest.mark.recording
def test_a_checkpointed_block_runs_each_of_its_operators_once_more(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
    block = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
    batch = torch.randn(4, 8, requires_grad=True)
    with torch.profiler.profile(record_shapes=True) as recording:
        checkpoint(block, batch, use_reentrant=False).sum().backward()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = {
        row.operator: row
        for row in rows_of(recomputed_operators(trace_at(tmp_path / "trace.json")))
    }
    assert (rows["aten::addmm"].call_count, rows["aten::addmm"].other_call_count) == (2, 2)
    assert (rows["aten::gelu"].call_count, rows["aten::gelu"].other_call_count) == (1, 1)
    assert "aten::mm" not in rows, "the backward pass' own products are no recomputation"
