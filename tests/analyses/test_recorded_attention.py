"""Attention as torch runs it today: recorded here, on the CPU, whose operators are the same."""

import math
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.analyses.operators.attention_chains import UnfusedAttention, unfused_attention

torch = pytest.importorskip("torch")
profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.recording
HEADS, LENGTH, SIZE, LAYERS = 4, 32, 16, 2


def _by_hand(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-2, -1) / math.sqrt(SIZE) + torch.zeros(LENGTH, LENGTH)
    return torch.dropout(scores.softmax(-1), 0.1, train=True) @ v


def _fused(q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def _fallback(q: Any, k: Any, v: Any) -> Any:
    attention = pytest.importorskip("torch.nn.attention")
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        return _fused(q, k, v)


def recorded(attend: Any, folder: Path) -> UnfusedAttention:
    inner = HEADS * SIZE
    layers = [torch.nn.Linear(inner, 3 * inner) for _ in range(LAYERS)]
    x = torch.randn(2, LENGTH, inner)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        for layer in layers:
            parts = layer(x).view(2, LENGTH, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
            x = attend(*parts).transpose(1, 2).reshape(2, LENGTH, inner)
        x.sum().backward()
    path = folder / "trace.json"
    profile.export_chrome_trace(str(path))
    return unfused_attention(trace_at(path))


def test_attention_by_hand_is_found_forward_and_backward(tmp_path: Path) -> None:
    found = recorded(_by_hand, tmp_path)
    assert found.is_backward.tolist() == [False, False, True, True]
    assert not found.is_math.any()


def test_torchs_fallback_is_found_and_told_apart(tmp_path: Path) -> None:
    found = recorded(_fallback, tmp_path)
    assert found.is_backward.tolist() == [False, False, True, True]
    assert found.is_math.tolist() == [True, True, False, False]


def test_fused_attention_is_none(tmp_path: Path) -> None:
    assert len(recorded(_fused, tmp_path).first) == 0
