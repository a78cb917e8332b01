"""Where to look for what a collective is, and how columns of texts are put together from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.frames.source import Rows, Source

Floats = NDArray[np.float64]
Texts = NDArray[np.object_]
"""Texts, or what was made of them; None where there is none."""
NOTHING: Texts = np.array(None, dtype=object)
MOST = 2.0**53
"""A count that is larger is a number that was read wrongly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Where to look for each collective, as events; -1 where there is none."""

    source: Source
    kernel: Rows
    params: Rows
    annotation: Rows
    function: Rows

    def whole(self, key: str) -> NDArray[np.int64]:
        """Return a number of the kernel's arguments, else of the call's; -1 for none."""
        of_kernel, of_call = self._both(lambda rows: self.source.whole(key, rows), np.array(-1))
        return np.where(of_kernel == -1, of_call, of_kernel)

    def count(self, key: str) -> Floats:
        """Return a number of the same that is not negative or absurd; NaN for none."""
        both = self._both(lambda rows: self.source.number(key, rows), np.array(np.nan))
        return bounded(np.where(np.isnan(both[0]), both[1], both[0]))

    def text(self, key: str) -> Texts:
        """Return a text of the same; None for none."""
        return filled(*self._both(lambda rows: texts(self.source.label(key, rows)), NOTHING))

    def _both(
        self, look_up: Callable[[Rows], NDArray[Any]], nothing: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        rows = np.concatenate((self.kernel, self.params))
        found = np.where(rows >= 0, look_up(np.maximum(rows, 0)), nothing)
        return found[: len(self.kernel)], found[len(self.kernel) :]

    def shapes(self, events: Rows) -> Texts:
        """Return the shapes of the inputs of host events (JSON)."""
        return self._of_host(events, "Input Dims", "Input dims")

    def types(self, events: Rows) -> Texts:
        """Return the types of the inputs of host events (JSON)."""
        return self._of_host(events, "Input type")

    def _of_host(self, events: Rows, key: str, *aliases: str) -> Texts:
        found = texts(self.source.label(key, np.maximum(events, 0), *aliases))
        return np.where(events >= 0, found, NOTHING)


def texts(labels: pd.Categorical) -> Texts:
    """Return a categorical as objects, None where there is none."""
    categories = np.array([*map(str, labels.categories), None], dtype=object)
    return np.asarray(categories[np.asarray(labels.codes)])


def category(values: Texts) -> pd.Categorical:
    """Return objects as a categorical."""
    codes, distinct = pd.factorize(values)
    return pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=object))


def mapped(values: Texts, function: Callable[[str], Any]) -> Texts:
    """Return what a function makes of each text, asked once a distinct one; None stays."""
    codes, distinct = pd.factorize(values)
    made = np.empty(len(distinct) + 1, dtype=object)
    for place, text in enumerate(distinct):
        made[place] = function(str(text))
    return np.asarray(made[codes])


def filled(*choices: NDArray[Any]) -> NDArray[Any]:
    """Return, for each entry, the first choice that is not missing."""
    found = choices[0]
    for other in choices[1:]:
        found = np.where(pd.isna(found), other, found)
    return found


def bounded(counts: NDArray[Any]) -> Floats:
    """Return counts with NaN for what can be none."""
    found = counts.astype(np.float64)
    return np.where((found >= 0) & (found < MOST), found, np.nan)
