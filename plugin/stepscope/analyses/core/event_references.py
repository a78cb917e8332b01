"""References to events (name, track, time), and the user's source lines that led to them."""

import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.base.findings import EventReference, SourceLine
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace, computed

FOREIGN_PREFIXES = (
    "<built-in",
    "<frozen",
    "<string>",
    "<__array_function__",
    "nn.Module:",
    "torch/",
    "torch\\",
    # torch leaves `site-packages/` out of what it writes
    "numpy/",
    "pandas/",
    "PIL/",
    "torchvision/",
    "tqdm/",
    "triton/",
    "stepscope/",
    # libraries that run a training loop, or that it calls; of libraries of models lines are of use
    "accelerate/",
    "datasets/",
    "fsspec/",
    "gymnasium/",
    "huggingface_hub/",
    "lightning/",
    "lightning_fabric/",
    "lightning_utilities/",
    "pytorch_lightning/",
    "safetensors/",
    "scipy/",
    "sklearn/",
    "tensorboard/",
    "tokenizers/",
    "torchmetrics/",
    "wandb/",
    "typing_extensions.py",
    "Python GC",
)
MODEL_LIBRARIES = (
    "apex/",
    "bitsandbytes/",
    "deepspeed/",
    "detectron2/",
    "dgl/",
    "diffusers/",
    "einops/",
    "fairseq/",
    "flash_attn/",
    "megatron/",
    "mmcv/",
    "mmengine/",
    "peft/",
    "pkg_resources/",
    "sentence_transformers/",
    "setuptools/",
    "timm/",
    "torch_geometric/",
    "transformers/",
    "trl/",
    "ultralytics/",
    "vllm/",
    "xformers/",
)
"""Libraries of models: findings name their lines, but they are not the user's files."""
FOREIGN_PARTS = (
    "site-packages/",
    "site-packages\\",
    "dist-packages/",
    "/torch/",
    "/torchinductor_",
    "lib/python3",
)


def device_event(trace: Trace, row: int, detail: str = "") -> EventReference:
    """Name a row of `device_events`."""
    event = trace.device_events.iloc[row]
    track = f"{trace.dialect.device} {event['device']}"
    if event["stream"] >= 0:
        track += f" stream {event['stream']}"
    return EventReference(
        name=str(event["name"]),
        track=track,
        start_ns=int(event["start_ns"]),
        duration_ns=int(event["duration_ns"]),
        detail=detail,
        event=int(event["event"]),
    )


def runtime_call(trace: Trace, row: int, detail: str = "") -> EventReference:
    """Name a row of `runtime_calls`."""
    return _on_thread(trace.runtime_calls.iloc[row], detail)


def host_call(trace: Trace, row: int, detail: str = "") -> EventReference:
    """Name a row of `host_calls`."""
    return _on_thread(trace.host_calls.iloc[row], detail)


def python_call(trace: Trace, row: int, detail: str = "") -> EventReference:
    """Name a row of `python_calls`."""
    return _on_thread(trace.python_calls.iloc[row], detail)


def _on_thread(event: "pd.Series[Any]", detail: str) -> EventReference:
    thread = str(event["thread"]).rpartition("/")[2]
    return EventReference(
        name=str(event["name"]),
        track=f"thread {thread}",
        start_ns=int(str(event["start_ns"])),
        duration_ns=int(str(event["duration_ns"])),
        detail=detail,
        event=int(str(event["event"])),
    )


FRAME = re.compile(r"^(?P<path>.+?)\((?P<line>[0-9]{1,9})\): (?P<function>.*)$")
"""A Python frame as the profiler writes it: `train.py(42): forward`."""


def source_lines(frames: Iterable[str]) -> tuple[SourceLine, ...]:
    """Return the distinct source lines of Python frames, in order; other texts are left out."""
    matches = (FRAME.match(frame.strip()) for frame in frames)
    lines = (
        SourceLine(path=match["path"], line=int(match["line"]), function=match["function"])
        for match in matches
        if match
    )
    return tuple(dict.fromkeys(lines))


def is_user_code(frame: str) -> bool:
    """Return whether a Python frame (`train.py(42): forward`) is the user's code."""
    if frame.startswith(FOREIGN_PREFIXES) or any(part in frame for part in FOREIGN_PARTS):
        return False
    path = frame.partition("(")[0].replace("\\", "/")
    stem = path.removeprefix("./").partition("/")[0].removesuffix(".py")
    return stem not in sys.stdlib_module_names


def is_users_file(frame: str) -> bool:
    """Return whether a Python frame is in a file of the user, not in a library's."""
    return is_user_code(frame) and not frame.replace("\\", "/").startswith(MODEL_LIBRARIES)


@computed
def user_calls(trace: Trace) -> pd.DataFrame:
    """Return the calls of the user's code, in the order they began."""
    calls = trace.python_calls[["name", "start_ns", "end_ns", "thread"]]
    return calls[name_mask(calls["name"], is_user_code)]


def source_line(trace: Trace, thread: str, start_ns: int, end_ns: int) -> str:
    """Return the user's innermost frame around a time on a thread, or ""."""
    frames = user_calls(trace)
    around = (frames["start_ns"].to_numpy() <= start_ns) & (frames["end_ns"].to_numpy() >= end_ns)
    rows = np.flatnonzero(around & (frames["thread"] == thread).to_numpy())
    return str(frames["name"].iloc[rows[-1]]) if len(rows) else ""


def longest_frame_during(trace: Trace, thread: str, start_ns: int, end_ns: int) -> str:
    """Return the user's frame that covers most of a time on a thread; of equals, the innermost.

    Frames of more than twice that duration (the training loop itself) do not count.
    """
    frames = user_calls(trace)
    begin, stop = frames["start_ns"].to_numpy(), frames["end_ns"].to_numpy()
    covered = np.minimum(stop, end_ns) - np.maximum(begin, start_ns)
    fits = (stop - begin <= 2 * (end_ns - start_ns)) & (2 * covered >= end_ns - start_ns)
    fits &= (frames["thread"] == thread).to_numpy()
    rows = np.flatnonzero(fits)
    if not len(rows):
        return ""
    best = rows[np.lexsort((begin[rows], covered[rows]))[-1]]
    return str(frames["name"].iloc[best])


def costliest_frame_during(
    trace: Trace, thread: str, start_ns: int, end_ns: int
) -> tuple[str, int]:
    """Return the user's function with the longest total time inside a time, and that total in ns.

    ("", 0) where no call of the user's code lies inside. Of equals, the innermost.
    """
    frames = user_calls(trace)
    begin, stop = frames["start_ns"].to_numpy(), frames["end_ns"].to_numpy()
    inside = (begin >= start_ns) & (stop <= end_ns) & (frames["thread"] == thread).to_numpy()
    rows = np.flatnonzero(inside)
    if not len(rows):
        return "", 0
    names = frames["name"].cat
    codes = names.codes.to_numpy()[rows]
    total_ns = np.bincount(codes, weights=(stop - begin)[rows])
    innermost = np.zeros(len(total_ns), dtype=np.int64)
    np.maximum.at(innermost, codes, begin[rows])
    best = int(np.lexsort((innermost, total_ns))[-1])
    return str(names.categories[best]), min(int(total_ns[best]), end_ns - start_ns)


def line_of_host_call(trace: Trace, row: int) -> str:
    """Return the user's source line that led to a row of `host_calls`, or ""."""
    if row < 0:
        return ""
    call = trace.host_calls.iloc[row]
    stack = call["call_stack"]
    if isinstance(stack, str):
        return user_line(stack.split(";"))
    return source_line(trace, str(call["thread"]), int(call["start_ns"]), int(call["end_ns"]))


def user_line(frames: Iterable[str]) -> str:
    """Return the user's first frame of a stack (innermost first, as torch 1.8 writes it), or ""."""
    return next((frame.strip() for frame in frames if is_user_code(frame.strip())), "")


def lines_of_device_events(trace: Trace, rows: Ints) -> pd.Categorical:
    """Return, for rows of `device_events`, the user's innermost function that launched them.

    From the operator's `Call stack`, else from the Python calls around the launch; else missing.
    """
    around, functions = _around_launch(trace, rows)
    listed, stacks = call_stack_lines(trace, links(trace).owner_of_device_event[rows])
    texts = pd.Index([*functions, *stacks], dtype=object)
    index = np.where(listed != NONE, listed + len(functions), around)
    codes, distinct = pd.factorize(texts)
    return pd.Categorical.from_codes(np.append(codes, NONE)[index], categories=distinct)


def _around_launch(trace: Trace, rows: Ints) -> tuple[Ints, list[str]]:
    call = links(trace).call_of_device_event[rows]
    functions = user_calls(trace)
    function = np.full(len(rows), NONE, dtype=np.int64)
    launched = call != NONE
    launches = trace.runtime_calls.iloc[call[launched]]
    function[launched] = call_tree.enclosing(spans(functions), spans(launches))
    codes = np.append(functions["name"].cat.codes.to_numpy(), NONE)[function]
    return codes, [str(name) for name in functions["name"].cat.categories]


def call_stack_lines(trace: Trace, calls: Ints) -> tuple[Ints, list[str]]:
    """Return the user's line in the `Call stack` of `host_calls` rows, as an index, and the lines.

    -1 for row -1 and for a stack without the user's code.
    """
    stacks = trace.host_calls["call_stack"].cat
    lines = [user_line(str(stack).split(";")) for stack in stacks.categories]
    index = np.array([at if line else NONE for at, line in enumerate(lines)] + [NONE])
    return index[np.append(stacks.codes.to_numpy(), NONE)[calls]], lines
