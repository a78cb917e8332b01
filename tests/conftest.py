"""What tests of every part share: where things are, and what this machine has."""

import os
import shutil
from pathlib import Path

import hypothesis
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_TRACES = ROOT.parent / "shared" / "traces"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Two busy cores make single examples slow without anything being wrong.
hypothesis.settings.register_profile("stepscope", deadline=None)
hypothesis.settings.load_profile("stepscope")


def pytest_report_header() -> str:
    """Say which pandas is tested: `make test` runs the core under two."""
    return f"pandas {pd.__version__} from {Path(pd.__file__).parents[1]}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; the test is skipped where there is none."""
    named = os.environ.get("STEPSCOPE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set STEPSCOPE_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of real traces from many machines, which lies beside a developer's clone."""
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    return SHARED_TRACES
