"""Fuzzing of the scanner and of the whole product."""

import sys

if "pandas" not in sys.modules:  # as the CLI does: pandas is slower with pyarrow
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # marks a missing module
    import pandas as pd  # noqa: F401

    del sys.modules["pyarrow"]
