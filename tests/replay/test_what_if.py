"""`stepscope whatif`: scales by name, what limits the step, and refusals that say what to do."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from loading import SHARED_TRACES, shared_trace_names, trace_at
from stepscope.base.errors import UsageError
from stepscope.cli import cli
from stepscope.replay.simulation import MOST_ERROR, replay_error, simulate
from stepscope.replay.what_if import Scale, WhatIf, parse_scale, predict

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["whatif", *arguments])


def test_a_scale_names_events_by_a_glob_pattern() -> None:
    assert parse_scale("kernels:*gemm*=0.5") == Scale(
        target="kernels", pattern="*gemm*", factor=0.5
    )
    assert parse_scale("operators:a=b=.5").pattern == "a=b"


@pytest.mark.parametrize("text", ["gemm=0.5", "kernels:gemm", "kernels:=1", "kernels:a=-1", ""])
def test_another_form_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(UsageError, match="is not of the form kernels:PATTERN=FACTOR"):
        parse_scale(text)


def test_without_loading_the_step_is_that_of_the_recorded_fix() -> None:
    log = str(SAMPLE_LOGS / "synthetic_dataloader" / "fault")
    result = json.loads(run(log, "--scale", "operators:*DataLoader*=0", "--format", "json").output)
    assert result["recorded_ns"] == pytest.approx(51.4e6, rel=0.01)
    assert result["simulated_ns"] == pytest.approx(28.5e6, rel=0.02), "the fix takes 28.5 ms"
    assert result["matches"] == [6]


def test_the_parts_of_the_path_sum_to_the_step() -> None:
    for name in shared_trace_names("kineto"):
        prediction = predict(trace_at(SHARED_TRACES / name), WhatIf(host=0.6, device=0.5))
        for times in ("recorded_ns", "simulated_ns"):
            parts = sum(getattr(part, times) for part in prediction.limits)
            assert parts == getattr(prediction, times)


def test_the_terminal_says_what_changes_and_how_well_the_model_fits() -> None:
    said = run(str(SAMPLE_LOGS / "synthetic_item_sync" / "fault"), "--no-waits").output
    assert said.startswith("The step takes 9.33 ms instead of 10.9 ms: it saves 1.53 ms (14.1 %).")
    assert "6 recorded steps. Replayed without changes, with typical delays" in said


def test_a_pattern_without_a_match_is_refused() -> None:
    refused = run(str(SAMPLE_LOGS / "masking" / "numpy"), "--scale", "kernels:*=0.5")
    assert refused.exit_code == 2
    assert "no kernels of this trace match '*'" in refused.output


@pytest.mark.parametrize("name", shared_trace_names())
def test_a_trace_that_the_model_does_not_describe_is_not_simulated(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    if abs(replay_error(trace)) <= MOST_ERROR:
        assert simulate(trace, []).saved_ns == 0
        return
    refused = run(str(SHARED_TRACES / name))
    assert refused.exit_code == 2
    assert "off its recorded end" in refused.output
    assert not np.isnan(replay_error(trace))
