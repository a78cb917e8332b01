"""Kind, message and process group of each collective, from its kernel, its call and the header."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames import collective_names as names
from stepscope.model.frames import process_groups
from stepscope.model.frames.collective_calls import CollectiveCalls
from stepscope.model.frames.collective_evidence import (
    NOTHING,
    Evidence,
    Texts,
    category,
    filled,
    mapped,
    texts,
)
from stepscope.model.frames.collective_sizes import by_ratio, sizes
from stepscope.model.frames.process_groups import ProcessGroup
from stepscope.model.frames.source import Rows, Source


def message(
    source: Source, host_calls: pd.DataFrame, kernel_event: Rows, calls: CollectiveCalls
) -> dict[str, Any]:
    """Return the columns from `kind` on, one entry per collective."""
    events = np.append(host_calls["event"].to_numpy(), -1)
    evidence = Evidence(
        source=source,
        kernel=kernel_event,
        params=events[calls.params],
        annotation=events[calls.annotation],
        function=events[calls.function],
    )
    host_names = np.append(texts(host_calls["name"].array), NOTHING)
    annotation, function = host_names[calls.annotation], host_names[calls.function]
    of_kernel = texts(source.text(source.columns.name[kernel_event]))
    kernel = np.where(kernel_event >= 0, of_kernel, NOTHING)
    kind = _kind(evidence.text("Collective name"), annotation, function, kernel)
    backend = _backend(source, annotation, kernel)
    group = _groups(source, evidence, backend)
    size = sizes(evidence, kind, function, group["group_size"])
    group["group_size"] = by_ratio(kind, size, group["group_size"])
    source_rank, destination_rank = _peers(evidence, annotation)
    return {
        "kind": category(kind),
        "backend": category(backend),
        **size,
        **group,
        "group_rank": evidence.whole("Rank"),
        "sequence": evidence.whole("Seq"),
        "source_rank": source_rank,
        "destination_rank": destination_rank,
        "is_async": mapped(evidence.text("Is asynchronized op"), _truth),
    }


def _kind(*sources: Texts) -> Texts:
    """Return the kind in the first of the names; vague kinds give way to a precise one."""
    kinds = [mapped(of, names.kind_of) for of in sources]
    precise = [np.where(np.isin(of, list(names.VAGUE_KINDS)), NOTHING, of) for of in kinds]
    return filled(*precise, *kinds, np.full(len(kinds[0]), names.UNKNOWN_KIND, dtype=object))


def _backend(source: Source, annotation: Texts, kernel: Texts) -> Texts:
    """Return the library; ROCm's has NCCL's names."""
    device_library = source.dialect.terms.get("collectives")
    library_of_device = device_library.lower() if device_library else None

    def of_annotation(name: str) -> str | None:
        match = names.ANNOTATION.match(name)
        library = match[1].lower() if match else None
        return library_of_device if library == "nccl" and library_of_device == "rccl" else library

    def of_kernel(name: str) -> str | None:
        return library_of_device or ("nccl" if "nccl" in name.lower() else None)

    return filled(
        mapped(kernel, _direct),
        mapped(annotation, of_annotation),
        mapped(kernel, of_kernel),
        np.full(len(kernel), library_of_device, dtype=object),
    )


def _direct(name: str) -> str | None:
    libraries = (library for pattern, library in names.DIRECT_KERNEL if pattern.search(name))
    return next(libraries, None)


def _truth(text: str) -> bool | None:
    """Return a text as a bool; None if it is neither true nor false."""
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())


def _peers(evidence: Evidence, annotation: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    named = mapped(annotation, names.peers_of)
    pairs = np.array([pair or (-1, -1) for pair in named], dtype=np.int64).reshape(-1, 2)
    sent, received = evidence.whole("Src Rank"), evidence.whole("Dst Rank")
    return np.where(sent >= 0, sent, pairs[:, 0]), np.where(received >= 0, received, pairs[:, 1])


def _groups(source: Source, evidence: Evidence, backend: Texts) -> dict[str, Any]:
    """Return each collective's group; an event without a group name gets the only fitting one."""
    listed = process_groups.header_groups(source.columns.metadata)
    only_group = {library: _only_group(listed, str(library)) for library in set(backend.tolist())}
    fitting = np.array([only_group[library] for library in backend.tolist()], dtype=object)
    name = filled(evidence.text("Process Group Name"), fitting)
    keys = pd.DataFrame(
        {
            "name": pd.Series(name, dtype=object),
            "ranks": pd.Series(evidence.text("Process Group Ranks"), dtype=object),
            "size": np.nan_to_num(evidence.count("Group size")),
            "start": evidence.whole("Global rank start"),
            "stride": evidence.whole("Global rank stride"),
        }
    )
    code = keys.groupby(list(keys), dropna=False, sort=False).ngroup().to_numpy()
    distinct = keys.drop_duplicates().to_numpy().tolist()
    members = [_members(listed, *key) for key in distinct]
    ranks = np.array([*(ranks for ranks, _ in members), None], dtype=object)
    descriptions = {key: group.description for key, group in listed.items()}
    description = filled(evidence.text("Process Group Description"), mapped(name, descriptions.get))
    return {
        "group": category(name),
        "group_description": category(description),
        "group_ranks": category(ranks[code]),
        "group_size": np.array([*(size for _, size in members), np.nan])[code],
    }


def _members(
    listed: dict[str, ProcessGroup], name: str | None, text: str | None, size: float, *spread: int
) -> tuple[str | None, float]:
    """Return a group's ranks (JSON) and size, from the arguments or from the header."""
    ranks = process_groups.members(text, int(size), *spread)
    header_group = listed.get(name or "")
    if not ranks and header_group is not None and size in (0, header_group.size):
        ranks = header_group.ranks
    size = size or len(ranks) or (header_group.size if header_group is not None else 0)
    is_size = 0 < size < process_groups.MOST_RANKS
    return process_groups.as_text(ranks), float(size) if is_size else np.nan


def _only_group(listed: dict[str, ProcessGroup], backend: str) -> str | None:
    """Return the only group, or the only one of this library; None if several fit."""
    torch_name = "nccl" if backend == "rccl" else backend  # torch does not distinguish them
    fitting = [group.name for group in listed.values() if torch_name in group.backend]
    if len(fitting) == 1:
        return fitting[0]
    return next(iter(listed)) if len(listed) == 1 else None
