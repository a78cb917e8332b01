"""What each kernel costs, by name, or by name and the way it was launched.

Means of blocks per multiprocessor and of occupancy are weighted by duration, over the kernels that
report one. Kineto writes an occupancy of 0 where it could not reckon one; such kernels are counted
apart instead of being averaged in, as torch-tb-profiler does (`kernel_parser.py`).
"""

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.kernel_names import short
from stepscope.analyses.links import links
from stepscope.frames import Column, Schema
from stepscope.trace import Trace, computed

Grouping = Literal["name", "launch"]
SCHEMA: Schema = (
    Column("name", "object", "text", "The name in short: without namespaces and arguments."),
    Column("full_name", "object", "text", "The name as the profiler wrote it."),
    Column("operator", "object", "text", "The innermost operator that launched it; None: unknown."),
    Column("grid", "object", "text", "Blocks in x, y, z (JSON); None where not recorded."),
    Column("block", "object", "text", "Threads a block in x, y, z (JSON)."),
    Column("registers_per_thread", "float64", "count", "NaN where not recorded."),
    Column("shared_memory_bytes", "float64", "bytes", "A block's; NaN where not recorded."),
    Column("call_count", "int64", "count", "How often it ran."),
    Column("total_ns", "int64", "ns", "Sum of its durations."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("p95_ns", "float64", "ns", "95th percentile of durations."),
    Column("kernel_share", "float64", "share", "Of all kernels' durations."),
    Column("blocks_per_sm", "float64", "count", "Duration-weighted mean; NaN: none reports one."),
    Column("occupancy_share", "float64", "share", "Duration-weighted mean over kernels above 0."),
    Column("no_occupancy_count", "int64", "count", "Kernels that report no occupancy, or 0."),
    Column("streams", "object", "text", "The streams it ran on."),
    Column("devices", "object", "text", "The devices it ran on."),
    Column("uses_matrix_unit", "object", "", "On tensor cores or the like; None: cannot be told."),
    Column("is_collective", "bool", "", "True for kernels of NCCL, RCCL and the like."),
)
"""By name, the columns `operator` to `shared_memory_bytes` are left out."""
LAUNCH_COLUMNS = ("operator", "grid", "block", "registers_per_thread", "shared_memory_bytes")


def kernel_table(trace: Trace, by: Grouping = "name") -> pd.DataFrame:
    """Return one row a kernel name, or a name, operator and launch, longest total first."""
    return _by_launch(trace) if by == "launch" else _by_name(trace)


@computed
def _by_name(trace: Trace) -> pd.DataFrame:
    return _table(trace, ())


@computed
def _by_launch(trace: Trace) -> pd.DataFrame:
    return _table(trace, LAUNCH_COLUMNS)


def launching_operator(trace: Trace) -> pd.Categorical:
    """Return the name of the innermost operator that launched each kernel, missing if unknown."""
    events, kernels = trace.device_events, trace.kernels
    names = trace.host_calls["name"].cat
    row = np.searchsorted(_sorted_events(events), kernels["event"].to_numpy())
    place = np.argsort(events["event"].to_numpy(), kind="stable")[row]
    owner = links(trace).owner_of_device_event[place]
    codes = np.append(names.codes.to_numpy(), -1)[owner]
    return pd.Categorical.from_codes(codes, categories=names.categories)


def _sorted_events(events: pd.DataFrame) -> NDArray[np.int64]:
    return np.sort(events["event"].to_numpy())


def _table(trace: Trace, launch: tuple[str, ...]) -> pd.DataFrame:
    kernels = trace.kernels.assign(operator=launching_operator(trace))
    group, first = _groups(kernels, ("name", *launch))
    full = kernels["name"].astype(object).to_numpy()[first]
    identity: dict[str, Any] = {
        "name": np.array([short(str(name)) for name in full], dtype=object),
        "full_name": full,
    }
    for column in launch:
        identity[column] = _plain(kernels[column].iloc[first])
    durations = _durations(kernels, group, len(first))
    columns = identity | durations | _traits(trace, kernels, group, first)
    # pandas 3 would make its own text type of these, in which None becomes NaN
    table = pd.DataFrame({key: pd.Series(of, dtype=of.dtype) for key, of in columns.items()})
    by = ["total_ns", "full_name"]
    ordered = table.sort_values(by, ascending=[False, True], kind="stable")
    return ordered.reset_index(drop=True)


def _plain(values: pd.Series) -> NDArray[Any]:
    """Return text as objects with None where it is missing; numbers as they are."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values.to_numpy())
    texts = np.array([*values.cat.categories, None], dtype=object)
    return np.asarray(texts[values.cat.codes.to_numpy()])


def _groups(
    frame: pd.DataFrame, by: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each row's group, and a row of each group; missing values are a value too."""
    key = np.zeros(len(frame), dtype=np.int64)
    for column in by:
        codes, values = pd.factorize(frame[column])
        key, _ = pd.factorize(key * (len(values) + 1) + codes + 1, sort=True)
    first = np.empty(int(key.max()) + 1 if len(key) else 0, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key))[::-1]  # what is set last stays
    return key, first


def _durations(
    kernels: pd.DataFrame, group: NDArray[np.int64], count: int
) -> dict[str, NDArray[Any]]:
    durations = kernels["duration_ns"].groupby(group)
    total = durations.sum().to_numpy()
    all_ns = int(total.sum())
    return {
        "call_count": np.bincount(group, minlength=count),
        "total_ns": total,
        "mean_ns": durations.mean().to_numpy(),
        "min_ns": durations.min().to_numpy(),
        "max_ns": durations.max().to_numpy(),
        "p95_ns": durations.quantile(0.95).to_numpy(),
        "kernel_share": total / all_ns if all_ns else np.zeros(count),
    }


def _traits(
    trace: Trace, kernels: pd.DataFrame, group: NDArray[np.int64], first: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    weight = kernels["duration_ns"].to_numpy().astype(np.float64)
    blocks = kernels["blocks_per_sm"].to_numpy()
    occupancy = kernels["occupancy_share"].to_numpy()
    reports = occupancy > 0
    return {
        "blocks_per_sm": _weighted_mean(blocks, weight, group, ~np.isnan(blocks)),
        "occupancy_share": _weighted_mean(occupancy, weight, group, reports),
        "no_occupancy_count": np.bincount(group[~reports], minlength=len(first)),
        "streams": _listed(kernels["stream"], group),
        "devices": _listed(kernels["device"], group),
        "uses_matrix_unit": _on_matrix_unit(trace, kernels["name"].iloc[first]),
        "is_collective": kernels["is_collective"].to_numpy()[first],
    }


def _weighted_mean(
    values: NDArray[np.float64],
    weight: NDArray[np.float64],
    group: NDArray[np.int64],
    chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return each group's mean of the chosen values; NaN where there is none of any length."""
    count = int(group.max()) + 1 if len(group) else 0
    mine = group[chosen]
    products = np.bincount(mine, weights=(values * weight)[chosen], minlength=count)
    weights = np.bincount(mine, weights=weight[chosen], minlength=count)
    means = np.full(count, np.nan)
    np.divide(products, weights, out=means, where=weights > 0)
    return means


def _listed(numbers: pd.Series, group: NDArray[np.int64]) -> NDArray[Any]:
    """Return each group's distinct numbers as text, ascending, comma separated."""
    place, distinct = pd.factorize(numbers.to_numpy(), sort=True)
    pairs = np.sort(pd.unique(group * len(distinct) + place))
    texts: dict[int, list[str]] = {}
    for which, number in zip(*np.divmod(pairs, len(distinct)), strict=True):
        texts.setdefault(which, []).append(str(distinct[number]))
    return np.array([", ".join(texts[which]) for which in sorted(texts)], dtype=object)


def _on_matrix_unit(trace: Trace, names: pd.Series) -> NDArray[Any]:
    pattern = trace.dialect.matrix_unit_kernel
    if pattern is None:
        return np.full(len(names), None, dtype=object)
    return np.array([bool(pattern.search(str(name))) for name in names], dtype=object)
