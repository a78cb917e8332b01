"""Process groups of a trace: ranks, role and cost."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.communication.collective_events import collective_events, is_in_forward
from stepscope.analyses.communication.group_roles import LARGE_BYTES, Signs, role
from stepscope.base.errors import MissingDataError
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.process_groups import ProcessGroup, header_groups
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed, whole_number

SCHEMA: Schema = (
    Column("group", "object", "text", "The name that torch gave it (`pg_name`): mostly a number."),
    Column("description", "object", "text", "Its description (`pg_desc`); None: not recorded."),
    Column("backend", "object", "text", "Its libraries (`backend_config`), or those seen in use."),
    Column("group_size", "float64", "count", "Number of its ranks; NaN: not recorded."),
    Column("ranks", "object", "text", "Its ranks (JSON); None: unknown."),
    Column("source", "object", "text", "`header` (distributedInfo.pg_config), `events`, or both."),
    Column("role", "object", "text", "Its likely role: `DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`,"
           " several joined by +, or `single`; None: unknown."),
    Column("role_confidence", "object", "text", "`high`, `medium` or `low`; None without a role."),
    Column("role_reason", "object", "text", "The evidence for the role."),
    Column("kinds", "object", "text", "Kinds of collectives seen in it, comma separated."),
    Column("call_count", "int64", "count", "Collectives in it."),
    Column("total_ns", "int64", "ns", "Sum of their durations, where known."),
    Column("exposed_ns", "int64", "ns", "Sum of their exposed time."),
    Column("total_bytes", "float64", "bytes", "Sum of their messages, where known."),
)  # fmt: skip
UNUSED: dict[str, Any] = {
    "kinds": [],
    "backend": [],
    "call_count": 0,
    "total_ns": 0,
    "exposed_ns": 0,
    "total_bytes": np.nan,
}
REMEDY = "torch.distributed.init_process_group(...)  # before profiling, with torch 2.3 or later"


@public_table(
    "process-groups",
    SCHEMA,
    "One row per process group: its ranks, its likely role with the reason, and the cost of its"
    " collectives on this rank.",
)
@computed
def process_groups(trace: Trace) -> pd.DataFrame:
    """Return one row per process group, most time first.

    Raises:
        MissingDataError: neither header nor events name one.
    """
    listed = header_groups(trace.metadata)
    events = collective_events(trace)
    events = events.assign(in_forward=is_in_forward(trace))
    named_events = events[events["group"].notna()]
    used = {str(name): rows for name, rows in named_events.groupby("group", sort=False)}
    if not listed and not used:
        reason = "no process group was recorded"
        raise MissingDataError(reason, REMEDY)
    about = _about(trace)
    names = dict.fromkeys((*listed, *used))
    rows = [_row(name, listed.get(name), used.get(name), about) for name in names]
    return rows_to_frame(SCHEMA, rows, "-total_ns")


def _about(trace: Trace) -> tuple[int, bool]:
    info = trace.metadata.get("distributedInfo")
    world_size = whole_number(info.get("world_size")) if isinstance(info, Mapping) else None
    wrapped = name_mask(trace.host_calls["name"], "DistributedDataParallel.forward".__eq__)
    return max(0, world_size or 0), bool(wrapped.any())


def _row(
    name: str, listed: ProcessGroup | None, events: pd.DataFrame | None, about: tuple[int, bool]
) -> dict[str, Any]:
    group = listed or ProcessGroup(name=name)
    used = UNUSED if events is None else _used(events)
    described, ranks, size = group.description, group.ranks, group.size
    if events is not None:
        described = described or _first(events["group_description"]) or ""
        ranks = ranks or tuple(json.loads(_first(events["group_ranks"]) or "[]"))
        size = size or len(ranks) or int(_first(events["group_size"]) or 0)
    world_size, has_data_parallel = about
    judged = role(
        Signs(
            description=described,
            ranks=ranks,
            size=size,
            kinds=frozenset(used["kinds"]),
            world_size=world_size,
            has_data_parallel=has_data_parallel,
            forward_share=_forward_share(events) if events is not None else None,
        )
    )
    return used | {
        "group": group.name,
        "description": described or None,
        "backend": group.backend or ", ".join(used["backend"]) or None,
        "group_size": float(size) if size else np.nan,
        "ranks": json.dumps(list(ranks), separators=(",", ":")) if ranks else None,
        "source": " and ".join(
            ["header"] * (listed is not None) + ["events"] * (events is not None)
        ),
        "role": judged.name,
        "role_confidence": judged.confidence,
        "role_reason": judged.reason,
        "kinds": ", ".join(used["kinds"]),
    }


def _forward_share(events: pd.DataFrame) -> float | None:
    is_large = (events["kind"] == "all_reduce") & (events["message_bytes"] >= LARGE_BYTES)
    flags = events["in_forward"][is_large].dropna()
    return float(flags.mean()) if len(flags) else None


def _used(events: pd.DataFrame) -> dict[str, Any]:
    return {
        "kinds": sorted(set(events["kind"])),
        "backend": sorted(set(events["backend"].dropna())),
        "call_count": len(events),
        "total_ns": int(events["duration_ns"].sum()),
        "exposed_ns": int(events["exposed_ns"].sum()),
        "total_bytes": float(events["message_bytes"].sum(min_count=1)),
    }


def _first(values: "pd.Series[Any]") -> Any:  # noqa: ANN401
    present = values.dropna()
    return present.iloc[0] if len(present) else None
