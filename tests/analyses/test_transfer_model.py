"""Which part of collectives' time is transfer: latency and bandwidth from the shortest messages."""

import numpy as np
import pandas as pd
import pytest

from stepscope.analyses.communication.collective_table import transfer_share


def events(*rows: tuple[str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["kind", "message_bytes", "duration_ns"])


def test_transfer_is_what_grows_with_the_size() -> None:
    # 1,000 bytes more take 100 ns more: 4,000 bytes in all are 400 ns of 1,600, of which one waited
    rows = [
        ("all_reduce", 1000.0, 200.0),
        ("all_reduce", 1000.0, 1100.0),
        ("all_reduce", 2000.0, 300.0),
    ]
    assert transfer_share(events(*rows)) == pytest.approx(400 / 1600)


def test_kinds_have_their_own_bandwidth() -> None:
    rows = [("all_reduce", 1000.0, 200.0), ("all_reduce", 2000.0, 300.0)]
    more = [("all_gather", 1000.0, 100.0), ("all_gather", 3000.0, 200.0)]
    # 3,000 * 0.1 and 4,000 * 0.05 of 800
    assert transfer_share(events(*rows, *more)) == pytest.approx(500 / 800)


def test_a_byte_takes_no_longer_than_in_the_fastest_message() -> None:
    # the largest ones waited for another rank; a byte of the others takes at most 0.2 ns
    rows = [
        ("all_reduce", 500.0, 200.0),
        ("all_reduce", 1000.0, 200.0),
        ("all_reduce", 2000.0, 8600.0),
    ]
    assert transfer_share(events(*rows)) == pytest.approx(3500 * 0.2 / 9000)


def test_messages_of_about_one_size_or_of_none_that_is_known_do_not_tell() -> None:
    alike = events(("all_reduce", 1000.0, 200.0), ("all_reduce", 1900.0, 300.0))
    unknown = events(("all_reduce", np.nan, 200.0), ("all_reduce", 2000.0, 300.0))
    assert np.isnan([transfer_share(each) for each in (alike, unknown, events())]).all()


def test_larger_messages_that_were_faster_leave_no_transfer() -> None:
    assert transfer_share(events(("send", 1000.0, 300.0), ("send", 2000.0, 200.0))) == 0
