"""Text of a synthetic job's traces: one template, filled in for each rank."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import synthesis
from benchmarks.job_events import events
from benchmarks.job_plan import DESCRIPTIONS, RANKS_A_HOST, Job
from benchmarks.job_segments import Turn
from benchmarks.job_times import Clocks
from synthesis.machines import MACHINES

MOST_RANKS_WRITTEN = 30
"""torch shortens longer lists of ranks."""
TIME = "<<time>>"
PLACEHOLDER = re.compile(r'"<<(?P<name>[^">]+)>>"')


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """Events of one trace, with `%s` for values that differ between ranks."""

    text: str
    names: Sequence[str]
    """Name of each placeholder: `time`, or a key of `_words`."""
    clock: NDArray[np.int64]
    """Clock of each time."""
    start: NDArray[np.float64]
    """Time, or begin of a duration, by that clock."""
    end: NDArray[np.float64]
    is_duration: NDArray[np.bool_]

    def filled(self, job: Job, clocks: Clocks, rank: int) -> str:
        """Return the text of a rank's trace."""
        base = clocks.base_ns[rank, self.clock] + clocks.ahead_ns[rank]
        scale = clocks.scale[rank, self.clock]
        start_ns = np.rint(base + scale * self.start)
        end_ns = np.rint(base + scale * self.end)
        times = iter((np.where(self.is_duration, end_ns - start_ns, start_ns) / 1000).tolist())
        words = _words(job, rank)
        values = tuple(next(times) if name == "time" else words[name] for name in self.names)
        head, tail = synthesis.text({**_header(job, rank), "traceEvents": []}).split(
            '"traceEvents": [\n', maxsplit=1
        )
        return f'{head}"traceEvents": [\n{self.text % values}{tail.lstrip(" ")}'


def template(job: Job, turns: Sequence[Turn]) -> Template:
    """Return the common template of a job's traces."""
    clock, start, end, is_duration = [], [], [], []
    marked = []
    for of, event in events(job, turns):
        begin, length = event["ts"], event.get("dur", 0)
        for key in ("ts", "dur"):
            if key in event:
                clock.append(of)
                start.append(begin)
                end.append(begin + length)
                is_duration.append(key == "dur")
        times = {key: TIME for key in ("ts", "dur") if key in event}
        marked.append(event | times)
    text = synthesis.text({"traceEvents": marked})
    text = text[text.index("[") + 1 : text.rindex("]")].strip("\n ")
    names = [match["name"] for match in PLACEHOLDER.finditer(text)]
    text = PLACEHOLDER.sub(
        lambda match: "%.3f" if match["name"] == "time" else "%s", text.replace("%", "%%")
    )
    return Template(
        text=text,
        names=names,
        clock=np.array(clock),
        start=np.array(start, dtype=np.float64),
        end=np.array(end, dtype=np.float64),
        is_duration=np.array(is_duration),
    )


def _words(job: Job, rank: int) -> dict[str, str]:
    """Return the values of a rank's placeholders, as JSON."""
    process, device = job.process_id(rank), rank % RANKS_A_HOST
    words: dict[str, object] = {
        "process": process,
        "device": device,
        "device label": f"GPU {device}",
    }
    for thread in range(2):
        words[f"thread {thread}"] = process + thread
        words[f"name of {thread}"] = f"thread {process + thread} (python)"
    for kind in job.groups:
        members = job.members(kind, rank)
        words |= {
            f"size {kind}": len(members),
            f"name {kind}": job.group_name(kind, rank),
            f"ranks {kind}": _listed(members),
            f"rank {kind}": members.index(rank),
        }
    return {name: json.dumps(value) for name, value in words.items()}


def _listed(members: Sequence[int]) -> str:
    if len(members) <= MOST_RANKS_WRITTEN:
        return json.dumps(list(members))
    shown = ", ".join(map(str, members[: MOST_RANKS_WRITTEN - 1]))
    return f"[{shown}, ..., {members[-1]}]"


def _header(job: Job, rank: int) -> dict[str, Any]:
    groups = [
        {
            "pg_name": job.group_name(kind, rank),
            "pg_desc": DESCRIPTIONS[kind],
            "backend_config": "cuda:nccl",
            "pg_size": len(job.members(kind, rank)),
            "ranks": job.members(kind, rank),
        }
        for kind in job.groups
    ]
    properties = {**(MACHINES["h100"].properties or {}), "id": rank % RANKS_A_HOST}
    return {
        "schemaVersion": 1,
        "deviceProperties": [properties],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank,
            "world_size": job.rank_count,
            "pg_count": len(groups),
            "pg_config": groups,
            "nccl_version": "2.27.5",
        },
        "record_shapes": 1,
        "with_modules": 1,
        "host_name": job.host(rank),
        "trace_id": f"{rank:032x}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
        "traceName": job.file_name(rank).removesuffix(".gz"),
    }
