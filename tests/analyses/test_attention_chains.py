"""Attention that is written out, and which kernels it launches."""

import numpy as np

import tracebuild
from loading import trace_of
from stepscope.analyses.operators.attention_chains import attention_chains
from stepscope.model.trace import Trace


def recorded(*actions: dict[str, object]) -> Trace:
    schedule = {"record": ["shapes"], "actions": list(actions)}
    return trace_of(document=tracebuild.document(schedule=schedule))


def operator(name: str, *dims: list[int]) -> dict[str, object]:
    body = [{"kernel": name, "us": 10}]
    return {"op": name, "dims": list(dims), "types": ["float"] * len(dims), "body": body}


SCORES = operator("aten::bmm", [4, 16, 8], [4, 8, 32])
SOFTMAX = operator("aten::_softmax")
VALUES = operator("aten::bmm", [4, 16, 32], [4, 32, 8])


def test_an_attention_has_its_rows_of_scores_and_their_bytes() -> None:
    chains = attention_chains(recorded(SCORES, operator("aten::mul"), SOFTMAX, VALUES))
    assert chains.query_length.tolist() == [16]
    assert chains.scores_bytes.tolist() == [4 * 16 * 32 * 4]
    assert chains.is_backward.tolist() == [False]
    assert chains.kernels.tolist() == [0, 1, 2, 3]
    assert chains.kernel_ns == 40_000


def test_the_scores_of_baddbmm_are_added_to_its_first_input() -> None:
    first = operator("aten::baddbmm", [4, 16, 32], [4, 16, 8], [4, 8, 32])
    chains = attention_chains(recorded(first, SOFTMAX, VALUES))
    assert chains.query_length.tolist() == [16]


def test_operators_of_two_threads_are_no_chain() -> None:
    trace = recorded(SCORES, SOFTMAX, {"thread": "other", "body": [VALUES]})
    assert len(attention_chains(trace).first) == 0


def test_kernels_belong_to_the_attention_around_their_launch() -> None:
    layer = operator("aten::addmm")
    trace = recorded(SCORES, SOFTMAX, VALUES, layer, SCORES, SOFTMAX, VALUES)
    chains = attention_chains(trace)
    assert chains.kernels.tolist() == [0, 1, 2, 4, 5, 6]
    assert chains.chains.tolist() == [0, 0, 0, 1, 1, 1]


def test_odd_shapes_are_unknown_shapes() -> None:
    odd = operator("aten::bmm", [4, 16])
    chains = attention_chains(recorded(odd, SOFTMAX, VALUES))
    assert np.isnan(chains.query_length).tolist() == [True]
    assert np.isnan(chains.scores_bytes).tolist() == [True]
