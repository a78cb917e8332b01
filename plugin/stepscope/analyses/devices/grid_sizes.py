"""Blocks per multiprocessor of a device's kernels.

A kernel with less than one block per multiprocessor leaves some idle. Kineto writes the ratio
(`blocks per SM`); negative and absurd values count as missing. Collectives are left out: few
blocks are enough for them.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

MOST_BLOCKS = 1e6
"""Blocks a multiprocessor above which the figure is no measurement."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GridSizes:
    """One device's kernels with recorded grids; all arrays are parallel."""

    rows: Ints
    """Rows of `Trace.kernels`."""
    blocks: Floats
    """Blocks a multiprocessor."""
    duration_ns: Ints
    on_matrix_unit: Mask
    """Whether its name says that it multiplies matrices on matrix units: such kernels often have
    as few blocks as fill them, and work long in each."""

    @property
    def is_small(self) -> Mask:
        """Whether each has less than one block per multiprocessor."""
        return self.blocks < 1

    @property
    def small_share(self) -> float | None:
        """Fraction of kernel time in small kernels; None where no grid was recorded."""
        return self._of_time(self.is_small.astype(float))

    @property
    def small_matrix_share(self) -> float | None:
        """Share of kernel time in small kernels that run on matrix units."""
        return self._of_time((self.is_small & self.on_matrix_unit).astype(float))

    @property
    def filled_share(self) -> float | None:
        """Mean share of the multiprocessors that have a block while a kernel runs."""
        return self._of_time(np.minimum(self.blocks, 1))

    def _of_time(self, weight: Floats) -> float | None:
        total_ns = self.duration_ns.sum()
        return float((self.duration_ns * weight).sum() / total_ns) if total_ns else None


def grid_sizes(trace: Trace, device: int) -> GridSizes:
    """Return the kernels of a device with recorded numbers of blocks."""
    kernels = trace.kernels
    blocks = kernels["blocks_per_sm"].to_numpy()
    is_plausible = (blocks >= 0) & (blocks <= MOST_BLOCKS) & ~kernels["is_collective"].to_numpy()
    rows = np.flatnonzero(is_plausible & (kernels["device"] == device).to_numpy())
    on_unit = name_mask(kernels["name"], trace.dialect.uses_matrix_unit)
    return GridSizes(
        rows=rows,
        blocks=blocks[rows],
        duration_ns=kernels["duration_ns"].to_numpy()[rows],
        on_matrix_unit=on_unit[rows],
    )
