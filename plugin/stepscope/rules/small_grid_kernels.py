"""Kernels whose grids are too small to fill the device."""

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.devices.device_metrics import GridSizes, grid_sizes
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import share
from stepscope.model.frames.name_masks import codes_and_names
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, recorded_facts

ROWS_SHOWN = 10


class Options(Thresholds):
    """Thresholds of kernels with small grids."""

    least_time_share: float = option(
        0.30,
        "Fraction of kernel time in kernels with less than one block per multiprocessor.",
        origin="ours: healthy public traces have 0.04 to 0.19, those of tiny batches 0.65 and "
        "0.78; that less than one block is not fully utilised is torch-tb-profiler's definition",
    )
    least_kernel_count: int = option(
        50,
        "Kernels in the window from which they are a pattern.",
        origin="ours: launch-bound's; traces of a kernel or two are tests",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report the share of kernel time in which multiprocessors have no block."""
    device = requirements.main_device(trace).device
    if not trace.dialect.records_occupancy:
        vendor = trace.dialect.vendor or "this vendor"
        msg = f"traces of {vendor}'s devices do not contain the number of blocks of kernels"
        raise NotApplicableError(msg)
    grids = grid_sizes(trace, device)
    small = grids.small_share
    if small is None:
        msg = "no kernel has a recorded number of blocks"
        raise MissingDataError(msg)
    if small <= options.least_time_share or len(grids.rows) < options.least_kernel_count:
        return
    yield Finding(
        severity="info",
        message=_message(trace, grids, small),
        evidence=(
            facts.fraction(
                f"Kernel time in kernels with fewer blocks than {_unit(trace)}s", small, "kernels"
            ),
            facts.fraction("Of it in matrix products", (grids.small_matrix_share or 0.0) / small),
            facts.fraction(f"{_unit(trace)}s with a block, mean", grids.filled_share or 0.0),
            facts.count("Such kernels", int(grids.is_small.sum()), "kernels"),
        ),
        tables=(_table(trace, grids),),
        fix=_fix(trace),
    )


def _unit(trace: Trace) -> str:
    return trace.dialect.terms.get("multiprocessor", "multiprocessor")


def _message(trace: Trace, grids: GridSizes, small: float) -> str:
    text = (
        f"{share(small)} of kernel time is in kernels with fewer blocks than {_unit(trace)}s: "
        f"while kernels run, {share(grids.filled_share or 0.0)} of the {_unit(trace)}s have a "
        "block on average."
    )
    if 2 * (grids.small_matrix_share or 0.0) >= small:
        return (
            f"{text} Most of it is matrix products, which work long in each block: they lose less "
            "than the figure says."
        )
    return text


def _table(trace: Trace, grids: GridSizes) -> EvidenceTable:
    """Return the small kernels by name, those that take longest first."""
    rows = grids.rows[grids.is_small]
    kernels = trace.kernels
    codes, names = codes_and_names(kernels["name"], rows)
    took_ns = kernels["duration_ns"].to_numpy()[rows]
    total_ns = np.bincount(codes, weights=took_ns, minlength=len(names))
    count = np.bincount(codes, minlength=len(names))
    blocks = np.bincount(
        codes, weights=took_ns * grids.blocks[grids.is_small], minlength=len(names)
    )
    worst = np.argsort(-total_ns, kind="stable")[:ROWS_SHOWN]
    whole_ns = max(1, int(grids.duration_ns.sum()))
    return facts.table(
        "Small kernels, those that take longest first",
        {
            "Kernel": "code",
            "Times": "count",
            "Takes": "ns",
            "Of kernel time": "share",
            f"Blocks a {_unit(trace)}": "count",
        },
        (
            (
                short(names[code]),
                int(count[code]),
                int(total_ns[code]),
                float(total_ns[code] / whole_ns),
                round(float(blocks[code] / max(1.0, total_ns[code])), 2),
            )
            for code in worst.tolist()
            if count[code]
        ),
        "kernels",
    )


def _compiling(trace: Trace) -> str:
    if recorded_facts.is_compiled(trace):
        return recorded_facts.compiling(trace)
    return "model = torch.compile(model)  # fuses neighbours into fewer, larger kernels"


def _fix(trace: Trace) -> Fix:
    batch = batch_size(trace)
    larger = (
        f"loader = DataLoader(dataset, batch_size={4 * batch.size})  # was {batch.size}\n"
        if batch and batch.size > 0
        else ""
    )
    return Fix(
        "Give each kernel more to do: more samples per step, neighbouring operations fused, many "
        "small products as one batched one.",
        f"{larger}{_compiling(trace)}\ntorch.bmm(a, b)  # in place of a loop over torch.mm",
        verify="The share of kernel time in small grids falls; samples a second rise.",
        caveats=(
            "Where latency is the goal, as in serving one request, small grids may be the price.",
            "Kernels that share a product's inner dimension, or stay resident, have few blocks by "
            "design.",
        ),
    )


RULE = Rule(
    id="small-grid-kernels",
    title="Kernels too small to fill the device",
    passed="Most kernel time is in kernels that fill the device",
    category="utilization",
    why="A kernel's blocks are spread over the device's multiprocessors. With fewer blocks than "
    "multiprocessors some are idle while it runs, though the device counts as busy.",
    detects="The fraction of kernel time of the busiest device in kernels with fewer blocks than "
    "the device has multiprocessors. It reports above `least_time_share`, where the grids of at "
    "least `least_kernel_count` kernels were recorded.",
    silent=(
        "Collectives are left out: few blocks are enough to move data.",
        "Numbers of blocks that are negative, or more than a million per multiprocessor, are "
        "ignored.",
        "Without recorded blocks per multiprocessor it does not apply.",
    ),
    saving="None is claimed: the grid does not show how much faster larger kernels are. It makes "
    "it more likely that the batch is too small.",
    fix=Fix(
        "Give each kernel more to do.",
        "model = torch.compile(model)  # fuses neighbours into fewer, larger kernels",
        verify="The share of kernel time in small grids falls.",
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times"}),
    priority="launches",
    after=("gpu-queue-stall",),
    links=(
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"
        "#thread-and-block-heuristics",
        "generated/torch.compile.html",
    ),
    origin="torch-tb-profiler's SM efficiency; msprof-analyze block_dim",
)
