"""Constructors of evidence: values that every form of a report can hold."""

import msgspec
import numpy as np

from stepscope.rules.shared import facts


def test_numbers_of_numpy_become_plain_ones() -> None:
    evidence = (facts.count("Kernels", np.float64(3)), facts.fraction("Busy", np.float64(0.5)))
    assert [type(item.value) for item in evidence] == [float, float]
    assert b'"value":0.5' in msgspec.json.encode(evidence)
