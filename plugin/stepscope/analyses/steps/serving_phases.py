"""Prefill and decode in traces of serving engines: iterations, tokens, and time of each phase.

An iteration is the engine's annotation around a forward pass; of nested ones the outermost. Its
name states the phase:

- vLLM: `execute_context_1(512)_generation_8(8)`, requests and their tokens. Requests in *context*
  are in prefill, those in *generation* decode.
- older vLLM: `execute_new_1_cached_8`, requests. New ones alone are in prefill; cached ones decode
  or continue a prompt, which is unknown.
- SGLang: `step[DECODE bs=32]`, `step[EXTEND bs=1 toks=512]`, `step[MIXED bs=2]`, by the mode.
- TraceLens, for both: `execute_32_context_0(sq0…)_generation_32(sq32…)`, with tokens as `sq`.

Without annotations, the Python calls of the forward pass, where stacks were recorded, are
iterations of an unknown phase. Iterations do not overlap: each begins where the one before ends, at
the end of its annotation or of the device work launched in it.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

Phase = Literal["prefill", "decode", "mixed", "unknown"]
PHASES: tuple[Phase, ...] = get_args(Phase)
CONTEXT = re.compile(
    r"execute_(?:\d+_)?context_(?P<prompts>\d+)\((?:sq)?(?P<prompt_tokens>\d+)[^()]*\)"
    r"_generation_(?P<outputs>\d+)\((?:sq)?(?P<output_tokens>\d+)[^()]*\)$"
)
NEW = re.compile(r"execute_new_(?P<new>\d+)_cached_(?P<cached>\d+)$")
STEP = re.compile(
    r"step\[(?P<mode>[A-Z_]+) bs=(?P<requests>\d+)(?: toks=(?P<tokens>\d+))?[^\]]*\]$"
)
MODES: dict[str, Phase] = {
    "EXTEND": "prefill",
    "SPLIT_PREFILL": "prefill",
    "DECODE": "decode",
    "TARGET_VERIFY": "decode",
    "MIXED": "mixed",
}
"""SGLang's forward modes (`ForwardMode`)."""
FORWARD = re.compile(
    r"(?:^|/)vllm/.*model_runner\.py\(\d+\): execute_model$"
    r"|(?:^|/)sglang/.*model_runner\.py\(\d+\): forward$"
)
"""Python calls of the engines' forward passes."""
SCHEMA: Schema = (
    Column("phase", "object", "text", "`prefill`: prompts only. `decode`: output tokens only."
           " `mixed`: both in one forward pass. `unknown`: the name does not state it."),
    Column("source", "object", "text", "What states the phase: `annotation`, or `Python call`,"
           " which does not."),
    Column("iteration_count", "int64", "count", "Iterations: forward passes of the engine."),
    Column("request_count", "float64", "count", "Requests in them, summed: a request counts in each"
           " of its iterations; NaN: not recorded."),
    Column("prompt_token_count", "float64", "count", "Tokens of prompts; NaN: not recorded."),
    Column("output_token_count", "float64", "count", "Output tokens; NaN: not recorded."),
    Column("wall_ns", "int64", "ns", "Duration of the iterations, without the time in between."),
    Column("wall_share", "float64", "share", "Of the duration of all iterations."),
    Column("device_busy_ns", "int64", "ns", "Time in which device work of the iterations ran."),
    Column("mean_ns", "float64", "ns", "Mean duration of an iteration."),
    Column("time_per_output_token_ns", "float64", "ns", "How long a request waits for an output"
           " token: duration times decoding requests over output tokens; NaN: none, or unknown."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The contents of one iteration, as its name states them; NaN: not stated."""

    phase: Phase
    requests: float = np.nan
    decoding_requests: float = np.nan
    prompt_tokens: float = np.nan
    output_tokens: float = np.nan


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingIterations:
    """Iterations of a serving engine in the order they began; all arrays are parallel."""

    batches: tuple[Batch, ...]
    source: str
    """`annotation` or `Python call`."""
    start_ns: Ints
    """The start of the call, after the end of the iteration before."""
    end_ns: Ints
    """The end of the call, or of its device work."""
    events: Ints
    """The iteration of each of `device_events`; -1: none."""


def batch_of(name: str) -> Batch | None:
    """Return the batch that an annotation describes; None: it is no iteration."""
    if match := CONTEXT.match(name):
        prompts, prompt_tokens, outputs, output_tokens = map(int, match.groups())
        return Batch(
            phase=_phase(prompts, outputs),
            requests=prompts + outputs,
            decoding_requests=outputs,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )
    if match := NEW.match(name):
        new, cached = map(int, match.groups())
        return Batch(phase="prefill" if new and not cached else "unknown", requests=new + cached)
    if match := STEP.match(name):
        return _sglang_batch(MODES.get(match["mode"], "unknown"), match)
    return None


def _phase(prompts: int, outputs: int) -> Phase:
    if prompts and outputs:
        return "mixed"
    return "prefill" if prompts else "decode" if outputs else "unknown"


def _sglang_batch(phase: Phase, match: re.Match[str]) -> Batch:
    """Return SGLang's batch: in the mode DECODE, each request has one token."""
    requests = int(match["requests"])
    tokens = int(match["tokens"]) if match["tokens"] else np.nan
    if phase == "prefill":
        return Batch(
            phase=phase,
            requests=requests,
            decoding_requests=0,
            prompt_tokens=tokens,
            output_tokens=0,
        )
    if match["mode"] == "DECODE":
        return Batch(
            phase=phase,
            requests=requests,
            decoding_requests=requests,
            prompt_tokens=0,
            output_tokens=requests,
        )
    return Batch(phase=phase, requests=requests)


@computed
def serving_iterations(trace: Trace) -> ServingIterations | None:
    """Return the iterations of a serving engine; None: the trace has none."""
    calls = trace.host_calls
    is_named = name_mask(calls["name"], lambda name: batch_of(name) is not None)
    frame = calls[is_named & ~calls["is_operator"].to_numpy()]
    source = "annotation"
    if not len(frame):
        frame = trace.python_calls[name_mask(trace.python_calls["name"], FORWARD.search)]
        source = "Python call"
    if not len(frame):
        return None
    thread = frame["thread"].cat.codes.to_numpy()
    start, duration = frame["start_ns"].to_numpy(), frame["duration_ns"].to_numpy()
    frame = frame[call_tree.nest(thread, start, duration).depth == 0].sort_values("start_ns")
    names = map(str, frame["name"])
    unknown = Batch(phase="unknown")
    events = _launched_in(trace, frame)
    end = frame["end_ns"].to_numpy().copy()
    inside = np.flatnonzero(events != NONE)
    np.maximum.at(end, events[inside], trace.device_events["end_ns"].to_numpy()[inside])
    end = np.maximum.accumulate(end)
    before = np.concatenate((frame["start_ns"].to_numpy()[:1], end[:-1]))
    return ServingIterations(
        batches=tuple(batch_of(name) or unknown for name in names),
        source=source,
        start_ns=np.maximum(frame["start_ns"].to_numpy(), before),
        end_ns=end,
        events=events,
    )


def _launched_in(trace: Trace, frame: pd.DataFrame) -> Ints:
    """Return the iteration that launched each device event, as a position in the frame, or -1."""
    calls = trace.runtime_calls
    lanes = [calls["thread"].cat.codes.to_numpy(), frame["thread"].cat.codes.to_numpy()]
    around = call_tree.enclosing(
        (lanes[1], frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()),
        (lanes[0], calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()),
    )
    return np.append(around, NONE)[links(trace).call_of_device_event]


@public_table(
    "serving-phases",
    SCHEMA,
    "One row per phase of a serving engine (prefill, decode, mixed, unknown): its iterations,"
    " tokens, device time and time per output token. vLLM and SGLang annotate their iterations.",
)
@computed
def serving_phases(trace: Trace) -> pd.DataFrame:
    """Return one row per phase that occurs, in the order of `PHASES`."""
    iterations = serving_iterations(trace)
    if iterations is None:
        return to_frame(SCHEMA, {column.name: [] for column in SCHEMA})
    phase = np.array([PHASES.index(of.phase) for of in iterations.batches])
    used, group = np.unique(phase, return_inverse=True)
    count = len(used)
    wall = iterations.end_ns - iterations.start_ns
    total = sums(wall, group, count)
    numbers = np.bincount(group, minlength=count)
    per_batch = {
        "request_count": [of.requests for of in iterations.batches],
        "prompt_token_count": [of.prompt_tokens for of in iterations.batches],
        "output_token_count": [of.output_tokens for of in iterations.batches],
    }
    columns: dict[str, Any] = {
        "phase": [PHASES[of] for of in used.tolist()],
        "source": [iterations.source] * count,
        "iteration_count": numbers,
        "wall_ns": total,
        "wall_share": total / max(1, int(total.sum())),
        "device_busy_ns": [_busy_ns(trace, iterations, group == at) for at in range(count)],
        "mean_ns": total / numbers,
        "time_per_output_token_ns": _time_per_token(iterations, wall, group, count),
    }
    for name, values in per_batch.items():
        columns[name] = np.bincount(group, weights=np.array(values, dtype=float), minlength=count)
    return to_frame(SCHEMA, columns)


def _busy_ns(trace: Trace, iterations: ServingIterations, is_of_phase: Mask) -> int:
    rows = np.append(is_of_phase, False)[iterations.events]
    events = trace.device_events[rows]
    times = intervals.union(events["start_ns"].to_numpy(), events["end_ns"].to_numpy())
    return intervals.duration_ns(times)


def _time_per_token(iterations: ServingIterations, wall: Ints, group: Ints, count: int) -> Floats:
    """Return the waiting of all requests over their tokens: NaN without tokens."""
    waited = wall * np.array([of.decoding_requests for of in iterations.batches])
    tokens = np.array([of.output_tokens for of in iterations.batches], dtype=np.float64)
    waits, outputs = (np.bincount(group, weights=of, minlength=count) for of in (waited, tokens))
    return np.asarray(np.divide(waits, outputs, out=np.full(count, np.nan), where=outputs > 0))
