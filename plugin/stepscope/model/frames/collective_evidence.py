"""Lookup of the arguments of collectives, and operations on columns of texts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames.source import Rows, Source

Floats = NDArray[np.float64]
Texts = NDArray[np.object_]
"""Texts, or values derived from them; None for missing ones."""
NOTHING: Texts = np.array(None, dtype=object)
MOST = 2.0**53
"""Larger counts are misread numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Events that describe each collective; -1 for none."""

    source: Source
    kernel: Rows
    params: Rows
    annotation: Rows
    function: Rows

    def whole(self, key: str) -> NDArray[np.int64]:
        """Return an integer argument of the kernel, else of the call; -1 for none."""
        of_kernel, of_call = self._both(lambda rows: self.source.whole(key, rows), np.array(-1))
        return np.where(of_kernel == -1, of_call, of_kernel)

    def count(self, key: str) -> Floats:
        """Return a count in the same arguments; NaN if missing, negative or absurd."""
        both = self._both(lambda rows: self.source.number(key, rows), np.array(np.nan))
        return bounded(np.where(np.isnan(both[0]), both[1], both[0]))

    def text(self, key: str) -> Texts:
        """Return a text in the same arguments; None for none."""
        return filled(*self._both(lambda rows: texts(self.source.label(key, rows)), NOTHING))

    def _both(
        self, look_up: Callable[[Rows], NDArray[Any]], nothing: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        rows = np.concatenate((self.kernel, self.params))
        values = np.where(rows >= 0, look_up(np.maximum(rows, 0)), nothing)
        return values[: len(self.kernel)], values[len(self.kernel) :]

    def shapes(self, events: Rows) -> Texts:
        """Return the shapes of the inputs of host events (JSON)."""
        return self._of_host(events, "Input Dims", "Input dims")

    def types(self, events: Rows) -> Texts:
        """Return the types of the inputs of host events (JSON)."""
        return self._of_host(events, "Input type")

    def _of_host(self, events: Rows, key: str, *aliases: str) -> Texts:
        labels = texts(self.source.label(key, np.maximum(events, 0), *aliases))
        return np.where(events >= 0, labels, NOTHING)


def texts(labels: pd.Categorical) -> Texts:
    """Return a categorical as objects, None for missing texts."""
    categories = np.array([*map(str, labels.categories), None], dtype=object)
    return np.asarray(categories[np.asarray(labels.codes)])


def category(values: Texts) -> pd.Categorical:
    """Return objects as a categorical."""
    codes, distinct = pd.factorize(values)
    return pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=object))


def mapped(values: Texts, function: Callable[[str], Any]) -> Texts:
    """Return the result of a function for each text, called once per distinct text; None stays."""
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
