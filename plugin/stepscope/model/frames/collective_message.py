"""What a collective is, and among whom: read from its kernel, its call, and the header."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames import collective_names as words
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
    """Return the columns from `kind` on, one entry a collective."""
    events = np.append(host_calls["event"].to_numpy(), -1)
    seen = Evidence(
        source=source,
        kernel=kernel_event,
        params=events[calls.params],
        annotation=events[calls.annotation],
        function=events[calls.function],
    )
    names = np.append(texts(host_calls["name"].array), NOTHING)
    annotation, function = names[calls.annotation], names[calls.function]
    of_kernel = texts(source.text(source.columns.name[kernel_event]))
    kernel = np.where(kernel_event >= 0, of_kernel, NOTHING)
    kind = _kind(seen.text("Collective name"), annotation, function, kernel)
    backend = _backend(source, annotation, kernel)
    group = _groups(source, seen, backend)
    size = sizes(seen, kind, function, group["group_size"])
    group["group_size"] = by_ratio(kind, size, group["group_size"])
    source_rank, destination_rank = _peers(seen, annotation)
    return {
        "kind": category(kind),
        "backend": category(backend),
        **size,
        **group,
        "group_rank": seen.whole("Rank"),
        "sequence": seen.whole("Seq"),
        "source_rank": source_rank,
        "destination_rank": destination_rank,
        "is_async": mapped(seen.text("Is asynchronized op"), _truth),
    }


def _kind(*names: Texts) -> Texts:
    """Return the kind that the first of the names tells; vague ones give way to a kernel's."""
    kinds = [mapped(of, words.kind_of) for of in names]
    precise = [np.where(np.isin(of, list(words.VAGUE_KINDS)), NOTHING, of) for of in kinds]
    return filled(*precise, *kinds, np.full(len(kinds[0]), words.UNKNOWN_KIND, dtype=object))


def _backend(source: Source, annotation: Texts, kernel: Texts) -> Texts:
    """Return the library; ROCm's has NCCL's names."""
    device_library = source.dialect.terms.get("collectives")
    own = device_library.lower() if device_library else None

    def of_annotation(name: str) -> str | None:
        match = words.ANNOTATION.match(name)
        library = match[1].lower() if match else None
        return own if library == "nccl" and own == "rccl" else library

    def of_kernel(name: str) -> str | None:
        return own or ("nccl" if "nccl" in name.lower() else None)

    return filled(
        mapped(kernel, _direct),
        mapped(annotation, of_annotation),
        mapped(kernel, of_kernel),
        np.full(len(kernel), own, dtype=object),
    )


def _direct(name: str) -> str | None:
    found = (library for pattern, library in words.DIRECT_KERNEL if pattern.search(name))
    return next(found, None)


def _truth(text: str) -> bool | None:
    """Return what a text says that is true or false; None where it is neither."""
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())


def _peers(seen: Evidence, annotation: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    named = mapped(annotation, words.peers_of)
    pairs = np.array([pair or (-1, -1) for pair in named], dtype=np.int64).reshape(-1, 2)
    sent, received = seen.whole("Src Rank"), seen.whole("Dst Rank")
    return np.where(sent >= 0, sent, pairs[:, 0]), np.where(received >= 0, received, pairs[:, 1])


def _groups(source: Source, seen: Evidence, backend: Texts) -> dict[str, Any]:
    """Return each collective's group; where only one fits, an event without a name is of that."""
    listed = process_groups.header_groups(source.columns.metadata)
    only = {library: _only_group(listed, str(library)) for library in set(backend.tolist())}
    fitting = np.array([only[library] for library in backend.tolist()], dtype=object)
    name = filled(seen.text("Process Group Name"), fitting)
    told = pd.DataFrame(
        {
            "name": pd.Series(name, dtype=object),
            "ranks": pd.Series(seen.text("Process Group Ranks"), dtype=object),
            "size": np.nan_to_num(seen.count("Group size")),
            "start": seen.whole("Global rank start"),
            "stride": seen.whole("Global rank stride"),
        }
    )
    code = told.groupby(list(told), dropna=False, sort=False).ngroup().to_numpy()
    distinct = told.drop_duplicates().to_numpy().tolist()
    members = [_members(listed, *key) for key in distinct]
    ranks = np.array([*(ranks for ranks, _ in members), None], dtype=object)
    described = {key: group.description for key, group in listed.items()}
    description = filled(seen.text("Process Group Description"), mapped(name, described.get))
    return {
        "group": category(name),
        "group_description": category(description),
        "group_ranks": category(ranks[code]),
        "group_size": np.array([*(size for _, size in members), np.nan])[code],
    }


def _members(
    listed: dict[str, ProcessGroup], name: str | None, text: str | None, size: float, *spread: int
) -> tuple[str | None, float]:
    """Return a group's ranks (JSON) and size, of the arguments or of the header."""
    ranks = process_groups.members(text, int(size), *spread)
    known = listed.get(name or "")
    if not ranks and known is not None and size in (0, known.size):
        ranks = known.ranks
    size = size or len(ranks) or (known.size if known is not None else 0)
    is_size = 0 < size < process_groups.MOST_RANKS
    return process_groups.as_text(ranks), float(size) if is_size else np.nan


def _only_group(listed: dict[str, ProcessGroup], backend: str) -> str | None:
    """Return the only group, or the only one that this library serves; None where several fit."""
    known_as = "nccl" if backend == "rccl" else backend  # to torch they are one
    fitting = [group.name for group in listed.values() if known_as in group.backend]
    if len(fitting) == 1:
        return fitting[0]
    return next(iter(listed)) if len(listed) == 1 else None
