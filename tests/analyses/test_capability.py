"""What the busiest device is able to do."""

import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.core.device_specs import compute_major, peak_ratio
from stepscope.model.trace import Trace


def on(machine: str, **metadata: object) -> Trace:
    schedule = {"machine": machine, "actions": [{"kernel": "k", "us": 5}]}
    return trace_of(document=tracebuild.document(schedule=schedule, metadata=metadata))


def test_an_h100_has_capability_9_and_rounds_float32_seven_times_as_fast() -> None:
    trace = on("h100")
    assert compute_major(trace) == 9
    assert peak_ratio(trace, "tf32", "float32") == pytest.approx(494.5 / 67)


def test_a_peak_that_no_data_sheet_has_gives_no_ratio() -> None:
    assert peak_ratio(on("v100-2021"), "tf32", "float32") is None


def test_a_device_of_another_number_is_like_the_only_one_that_is_known() -> None:
    properties = [{"id": 3, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "numSms": 108}]
    assert compute_major(on("h100", deviceProperties=properties)) == 8


@pytest.mark.parametrize("written", [None, "nine", [], {}])
def test_an_unknown_device_can_do_no_one_knows_what(written: object) -> None:
    trace = on("h100", deviceProperties=[{"id": 0, "name": "?", "computeMajor": written}])
    assert compute_major(trace) is None
    assert peak_ratio(trace, "tf32", "float32") is None
