"""When rows of a frame ran."""

import numpy as np
import pandas as pd

from stepscope.analyses.core.frame_times import ALL, times

FRAME = pd.DataFrame({"start_ns": [0, 4, 8, 9], "end_ns": [5, 7, 8, 12]})


def test_rows_that_overlap_are_one_time_and_those_of_no_time_are_none() -> None:
    assert times(FRAME, ALL).tolist() == [[0, 7], [9, 12]]


def test_a_mask_and_places_choose_the_same_rows() -> None:
    by_mask = times(FRAME, np.array([True, False, False, True]))
    assert by_mask.tolist() == [[0, 5], [9, 12]]
    assert times(FRAME, np.array([3, 0])).tolist() == by_mask.tolist()
