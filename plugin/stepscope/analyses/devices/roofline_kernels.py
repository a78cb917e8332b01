"""Kernels of the rows of the roofline table."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.links import links
from stepscope.analyses.operators.flops import nearest_with_work
from stepscope.dialects import Kind
from stepscope.model.trace import Trace


def kernels_of(trace: Trace, groups: pd.DataFrame) -> NDArray[np.bool_]:
    """Return a mask of `device_events`: kernels of calls with these names and shapes.

    `groups` are rows of `roofline`; calls of one name and shapes but other types are theirs too.
    """
    names, dims = trace.host_calls["name"].cat, trace.host_calls["input_dims"].cat
    name_codes = {str(name): code for code, name in enumerate(names.categories)}
    dims_codes = {str(text): code for code, text in enumerate(dims.categories)}
    width = len(dims.categories) + 1
    pairs = set(zip(groups["name"], groups["input_dims"], strict=True))
    selected = [name_codes[name] * width + dims_codes[text] for name, text in pairs]
    keys = names.codes.to_numpy().astype(np.int64) * width + dims.codes.to_numpy()
    call = nearest_with_work(trace, links(trace).owner_of_device_event)
    is_kernel = trace.device_events["kind"].to_numpy() == int(Kind.KERNEL)
    return np.asarray(np.append(np.isin(keys, selected), False)[call] & is_kernel)
