"""By what operators are put together in tables: a group and its texts for every call."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames.steps import without_number
from stepscope.model.trace import Trace

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """A text for each call, or none."""

    codes: Rows
    """An index into `texts`, -1 for none; one a call."""
    texts: tuple[str, ...]

    def at(self, codes: Rows) -> NDArray[np.object_]:
        """Return the texts of codes, None for -1."""
        return np.array([*self.texts, None], dtype=object)[codes]


def names(trace: Trace) -> Labels:
    """Return each call's name; all steps are `ProfilerStep*`."""
    named = trace.host_calls["name"].cat
    texts = [without_number(str(name)) for name in named.categories]
    return distinct(named.codes.to_numpy(), [*texts, ""])  # code -1: an event without a name


def shapes(trace: Trace) -> Labels:
    """Return the shapes of each call's inputs as JSON."""
    dims = trace.host_calls["input_dims"].cat
    return Labels(codes=dims.codes.to_numpy().astype(np.int64), texts=tuple(dims.categories))


def distinct(codes: NDArray[np.integer], texts: list[str]) -> Labels:
    """Return labels of which several codes may have the same text; code -1 is the last text."""
    place, found = pd.factorize(np.array(texts, dtype=object))
    return Labels(codes=place.astype(np.int64)[codes], texts=tuple(found))
