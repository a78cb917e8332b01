"""Generated traces, and findings that claim their times, waits, calls and device work."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from loading import trace_of
from replay.test_graph import recorded
from stepscope.advice.rule_finding import RuleFinding
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.base.calibration import Factor
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding
from test_advice import rule

Action = dict[str, Any]

short_us = st.integers(1, 60)
kernels = st.builds(
    lambda us, stream: (
        {"op": "aten::mm", "us": 4, "body": [{"kernel": "gemm", "us": us}]}
        if stream is None
        else {"op": "aten::mm", "us": 4, "body": [{"kernel": "side", "us": us, "stream": stream}]}
    ),
    st.integers(1, 300),
    st.sampled_from((None, 20, 21)),
)
actions = st.one_of(
    kernels,
    kernels,
    st.builds(lambda us: {"host": us}, st.integers(1, 300)),
    st.builds(lambda us: {"op": "aten::relu", "us": us}, short_us),
    st.just({"item": 4}),
    st.just({"sync": "device"}),
    st.builds(lambda us: {"thread": "autograd", "body": [{"op": "aten::t", "us": us}]}, short_us),
)
"""Host time, operators, kernels on three streams, waits, and work on a second thread."""


def schedules(most: int = 6) -> st.SearchStrategy[Trace]:
    """Return traces of one to three steps of these actions; device and host agree in them."""
    bodies = st.lists(actions, min_size=1, max_size=most)
    return st.builds(lambda body, steps: recorded(*body, steps=steps), bodies, st.integers(1, 3))


host_rows = st.lists(
    st.builds(
        lambda at, us, thread: ["cpu_op", "aten::mm", at, us, {"tid": thread}],
        st.integers(0, 400),
        st.integers(0, 80),
        st.sampled_from((1, 1, 2)),
    ),
    min_size=1,
    max_size=8,
)


def host_traces() -> st.SearchStrategy[Trace]:
    """Return traces of operators on two threads, without a device."""
    step = ["user_annotation", "ProfilerStep#1", 0, 500, {"tid": 1}]
    return host_rows.map(lambda rows: trace_of([step, *rows]))


shares = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))


@st.composite
def spans(draw: st.DrawFn, trace: Trace) -> Intervals:
    """Return some times in, before and behind the window."""
    span = window(trace)
    length = max(8, span.device_end_ns - span.start_ns)
    eighths = draw(st.lists(st.tuples(st.integers(-1, 8), st.integers(1, 4)), max_size=3))
    start = np.array([span.start_ns + at * length // 8 for at, _ in eighths], dtype=np.int64)
    sizes = np.array([size * length // 8 for _, size in eighths], dtype=np.int64)
    return intervals.union(start, start + sizes)


@st.composite
def claims(draw: st.DrawFn, trace: Trace) -> Claim:
    """Return a claim of any form."""
    low, high = sorted((draw(shares), draw(shares)))
    factor = Factor(low=low, high=high, source="The test.")
    waits, calls = synchronizations(trace).calls, np.arange(len(trace.host_calls))
    form = draw(st.sampled_from(("times", "times", "work", "waits", "calls")))
    return Claim(
        intervals=draw(spans(trace)),
        factor=factor,
        low_intervals=draw(st.none() | spans(trace)),
        is_device_work=form == "work",
        waits=draw(_some(waits)) if form == "waits" else None,
        calls=draw(_some(calls)) if form == "calls" else None,
    )


@st.composite
def findings(draw: st.DrawFn, trace: Trace, most: int = 4) -> list[RuleFinding]:
    """Return findings of as many rules, in their claim order."""
    each = st.lists(claims(trace), min_size=1, max_size=2)
    return [finding(number, claimed) for number, claimed in enumerate(draw(_lists(each, most)))]


def finding(number: int, claimed: Sequence[Claim]) -> RuleFinding:
    """Return a finding of a rule that claims after those of lower numbers."""
    found = Finding(message="claims", severity="info", claims=tuple(claimed))
    return RuleFinding(rule=rule(f"rule-{number}", found, priority=number), finding=found)


def _some(rows: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    masks = st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
    return masks.map(lambda mask: rows[np.array(mask, dtype=bool)])


def _lists(each: st.SearchStrategy[list[Claim]], most: int) -> st.SearchStrategy[list[list[Claim]]]:
    return st.lists(each, min_size=1, max_size=most)
