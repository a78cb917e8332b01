"""Stacks as a file: collapsed, or for speedscope."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stepscope.analyses.host.call_stacks import Metric, call_stacks
from stepscope.analyses.host.host_flame import host_flame
from stepscope.model.trace import Trace
from stepscope.render import collapsed_stacks, speedscope
from stepscope.storage.output_files import atomic_output

Form = Literal["collapsed", "speedscope"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to write of a recording, and where."""

    metric: Metric
    form: Form
    path: str


def write(trace: Trace, request: Request) -> None:
    """Write a recording's stacks.

    Raises:
        MissingDataError: the recording holds no stacks.
        OSError: nothing can be written there.
    """
    with atomic_output(request.path) as sink:
        for text in _texts(trace, request):
            sink.write(text.encode("utf-8", "replace"))


def _texts(trace: Trace, request: Request) -> Iterator[str]:
    if request.form == "collapsed":
        return collapsed_stacks.lines(call_stacks(trace), request.metric)
    return speedscope.parts(host_flame(trace), request.metric, trace.worker)
