"""Rates of copies and memory sets beside HTA's memory bandwidth, from the same files."""

import pandas as pd
import pytest

from loading import SHARED_TRACES, trace_at
from peers import hta_peer
from stepscope.analyses.devices.transfer_table import copies, memory_sets

pytestmark = [pytest.mark.peer, pytest.mark.every]

NAMES = (
    "hta/nccl_parser_config/nccl_data.json.gz",
    "hta/trace_diff/control/control.json.gz",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/b200/eager_trace.json.gz",
)


@pytest.fixture(scope="module", params=NAMES)
def both(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ours and HTA's, by HTA's kinds: `Memcpy HtoD`, `Memset`."""
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    paths = tuple(SHARED_TRACES / name for name in NAMES)
    theirs = hta_peer.figures(paths)[SHARED_TRACES / request.param]["bandwidth"]
    trace = trace_at(SHARED_TRACES / request.param)
    ours = pd.concat([copies(trace), memory_sets(trace)])
    kind = ours["name"].str.replace(r" \(.*", "", regex=True)
    rated = ours.assign(
        kind=kind,
        times=ours["mean_bytes_per_second"] * ours["call_count"],
        seconds=ours["total_bytes"] / ours["bytes_per_second"],
    )
    return rated.groupby("kind").sum(numeric_only=True), pd.DataFrame(theirs).set_index("name")


def test_the_mean_rate_of_each_kind_is_the_same(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    ours, theirs = both
    assert ours["call_count"].to_dict() == theirs["count"].to_dict()
    means = ours["times"] / ours["call_count"] / 1e9
    assert means.to_dict() == pytest.approx(theirs["mean"].to_dict(), rel=1e-9)


def test_what_a_memory_moved_in_its_time_is_not_the_mean_of_the_rates(
    both: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    # HTA's mean gives a copy of one byte the weight of one of a gigabyte: of the A100's copies
    # within the device it is 39 GB/s, where 136 GB/s were moved.
    ours, theirs = both
    many = ours["call_count"] > 1
    moved = ours["total_bytes"] / ours["seconds"] / 1e9
    assert (abs(moved - theirs["mean"])[many] > 0.01 * theirs["mean"][many]).any()
