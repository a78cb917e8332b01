"""Types of arrays, and the index that stands for nothing."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Objects = NDArray[np.object_]
NONE = -1
"""The row, group or code of nothing; as an index it selects the last entry."""
