"""Kind, message and process group of each collective, from its kernel, its call and the header."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.arrays import Floats, Ints, Objects
from stepscope.model.frames import collective_names as names
from stepscope.model.frames import process_groups
from stepscope.model.frames.collective_calls import CollectiveCalls
from stepscope.model.frames.process_groups import ProcessGroup
from stepscope.model.frames.source import Source

NOTHING: Objects = np.array(None, dtype=object)
MOST = 2.0**53
"""Larger counts are misread numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Events that describe each collective; -1 if missing."""

    source: Source
    kernel: Ints
    params: Ints
    annotation: Ints
    function: Ints

    def whole(self, key: str) -> Ints:
        """Return an integer argument of the kernel, otherwise of the call; -1 if missing."""
        of_kernel, of_call = self._both(lambda rows: self.source.whole(key, rows), np.array(-1))
        return np.where(of_kernel == -1, of_call, of_kernel)

    def count(self, key: str) -> Floats:
        """Return a count in the same arguments; NaN if missing, negative or implausible."""
        both = self._both(lambda rows: self.source.number(key, rows), np.array(np.nan))
        return bounded(np.where(np.isnan(both[0]), both[1], both[0]))

    def text(self, key: str) -> Objects:
        """Return a text in the same arguments; None if missing."""
        return filled(*self._both(lambda rows: texts(self.source.label(key, rows)), NOTHING))

    def _both(
        self, look_up: Callable[[Ints], NDArray[Any]], nothing: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        rows = np.concatenate((self.kernel, self.params))
        values = np.where(rows >= 0, look_up(np.maximum(rows, 0)), nothing)
        return values[: len(self.kernel)], values[len(self.kernel) :]

    def shapes(self, events: Ints) -> Objects:
        """Return the shapes of the inputs of host events (JSON)."""
        return self._of_host(events, "Input Dims", "Input dims")

    def types(self, events: Ints) -> Objects:
        """Return the types of the inputs of host events (JSON)."""
        return self._of_host(events, "Input type")

    def _of_host(self, events: Ints, key: str, *aliases: str) -> Objects:
        labels = texts(self.source.label(key, np.maximum(events, 0), *aliases))
        return np.where(events >= 0, labels, NOTHING)


def texts(labels: pd.Categorical) -> Objects:
    """Return a categorical as objects, None for missing texts."""
    categories = np.array([*map(str, labels.categories), None], dtype=object)
    return np.asarray(categories[np.asarray(labels.codes)])


def category(values: Objects) -> pd.Categorical:
    """Return objects as a categorical."""
    codes, distinct = pd.factorize(values)
    return pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=object))


def mapped(values: Objects, function: Callable[[str], Any]) -> Objects:
    """Return a function's result for each text, called once per distinct text; None is kept."""
    codes, distinct = pd.factorize(values)
    made = np.empty(len(distinct) + 1, dtype=object)
    for index, text in enumerate(distinct):
        made[index] = function(str(text))
    return np.asarray(made[codes])


def filled(*choices: NDArray[Any]) -> NDArray[Any]:
    """Return, for each entry, the first choice that is not missing."""
    result = choices[0]
    for other in choices[1:]:
        result = np.where(pd.isna(result), other, result)
    return result


def bounded(counts: NDArray[Any]) -> Floats:
    """Return counts with NaN for implausible ones."""
    numbers = counts.astype(np.float64)
    return np.where((numbers >= 0) & (numbers < MOST), numbers, np.nan)


SYMMETRIC = ("all_reduce", "broadcast", "reduce")
"""Kinds in which every rank outputs as much as it inputs."""
SIDES = re.compile(r"^c10d::_?(?:all_?gather|reduce_?scatter|all_?to_?all)_?(?:into_tensor_)?base_")
"""torch's operators whose first input is the output tensor, and the second the input."""


def sizes(
    evidence: Evidence, kind: Objects, function: Objects, group_size: Floats
) -> dict[str, Any]:
    """Return the columns `dtype`, `in_bytes`, `out_bytes` and `message_bytes`."""
    dtype = filled(
        mapped(evidence.text("dtype"), names.type_of),
        mapped(evidence.types(evidence.annotation), names.first_type),
        mapped(evidence.types(evidence.function), names.first_type),
    )
    put_in, got_out = _both_sides(kind, *_elements(evidence, function), group_size)
    item = np.array([pair[1] if pair else np.nan for pair in dtype], dtype=np.float64)
    item[kind == "barrier"] = np.nan  # it sends about a byte, which is not meaningful
    return {
        "dtype": category(np.array([pair[0] if pair else None for pair in dtype], dtype=object)),
        "in_bytes": put_in * item,
        "out_bytes": got_out * item,
        "message_bytes": np.fmax(put_in, got_out) * item,
    }


def by_ratio(kind: Objects, columns: dict[str, Any], group_size: Floats) -> Floats:
    """Return the group's size; if not recorded, derive it from the ratio of input and output."""
    larger, smaller = columns["message_bytes"], np.fmin(columns["in_bytes"], columns["out_bytes"])
    ratio = np.divide(larger, smaller, out=np.full(len(larger), np.nan), where=smaller > 0)
    tells = np.isin(kind, ("all_gather", "reduce_scatter")) & (ratio == np.floor(ratio))
    return np.where(np.isnan(group_size) & tells & (ratio > 1), ratio, group_size)


def _elements(evidence: Evidence, function: Objects) -> tuple[Floats, Floats]:
    """Return the number of elements that a rank inputs and outputs; NaN if unknown."""
    annotated = mapped(evidence.shapes(evidence.annotation), names.elements_of)
    inputs = mapped(evidence.shapes(evidence.function), names.elements_of)
    has_sides = np.array([bool(name and SIDES.match(name)) for name in function], dtype=bool)
    sent = np.where(has_sides, _item(inputs, 1), _item(inputs, 0))
    put_in = filled(evidence.count("In msg nelems"), _total(annotated), sent)
    return put_in, filled(
        evidence.count("Out msg nelems"), np.where(has_sides, _item(inputs, 0), np.nan)
    )


def _both_sides(
    kind: Objects, put_in: Floats, got_out: Floats, group_size: Floats
) -> tuple[Floats, Floats]:
    """Derive missing sizes from the kind: the annotation's shapes are those of the input."""
    follows = {"all_gather": put_in * group_size, "reduce_scatter": put_in / group_size}
    follows |= dict.fromkeys((*SYMMETRIC, "all_to_all"), put_in)
    for symmetric, elements in follows.items():
        got_out = np.where((kind == symmetric) & np.isnan(got_out), elements, got_out)
    is_missing = np.isin(kind, SYMMETRIC) & np.isnan(put_in)
    return np.where(is_missing, got_out, put_in), got_out


def _total(counts: NDArray[Any]) -> Floats:
    return bounded(np.array([sum(of) if of else np.nan for of in counts], dtype=np.float64))


def _item(counts: NDArray[Any], index: int) -> Floats:
    values = [of[index] if of and len(of) > index and of[index] else np.nan for of in counts]
    return bounded(np.array(values, dtype=np.float64))


def message(
    source: Source, host_calls: pd.DataFrame, kernel_event: Ints, calls: CollectiveCalls
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


def _kind(*sources: Objects) -> Objects:
    """Return the kind in the first matching name; a precise kind overrides vague ones."""
    kinds = [mapped(of, names.kind_of) for of in sources]
    precise = [np.where(np.isin(of, list(names.VAGUE_KINDS)), NOTHING, of) for of in kinds]
    return filled(*precise, *kinds, np.full(len(kinds[0]), names.UNKNOWN_KIND, dtype=object))


def _backend(source: Source, annotation: Objects, kernel: Objects) -> Objects:
    """Return the library; ROCm's library uses NCCL's names."""
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


def _peers(evidence: Evidence, annotation: Objects) -> tuple[Ints, Ints]:
    named = mapped(annotation, names.peers_of)
    pairs = np.array([pair or (-1, -1) for pair in named], dtype=np.int64).reshape(-1, 2)
    sent, received = evidence.whole("Src Rank"), evidence.whole("Dst Rank")
    return np.where(sent >= 0, sent, pairs[:, 0]), np.where(received >= 0, received, pairs[:, 1])


def _groups(source: Source, evidence: Evidence, backend: Objects) -> dict[str, Any]:
    """Return each collective's group; without a group name, the only matching group."""
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
    """Return the only group, or the only group of this library; None if several match."""
    torch_name = "nccl" if backend == "rccl" else backend  # torch does not distinguish them
    fitting = [group.name for group in listed.values() if torch_name in group.backend]
    if len(fitting) == 1:
        return fitting[0]
    return next(iter(listed)) if len(listed) == 1 else None
