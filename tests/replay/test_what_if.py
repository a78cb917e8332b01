"""`stepscope whatif`: scales by name, what limits the step, and refusals that say what to do."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import stepscope
import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at
from stepscope.base.errors import UsageError
from stepscope.cli import cli
from stepscope.replay.changes import ScaleDevice
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


def test_a_factor_has_an_upper_limit() -> None:
    with pytest.raises(UsageError, match="a factor is at most 100"):
        parse_scale("kernels:a=" + "9" * 400)


def test_times_beyond_64_bits_stay_long() -> None:
    trace = trace_at(next((SAMPLE_LOGS / "synthetic_item_sync" / "fault").glob("*.gz")))
    many = predict(trace, WhatIf(scales=(parse_scale("operators:*=100"),) * 50))
    assert many.simulated_ns > 1e6 * many.recorded_ns


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
    assert said.startswith("The step takes 9.22 ms instead of 10.9 ms: it saves 1.64 ms (15.1 %).")
    assert "6 recorded steps. Replayed without changes, with typical delays" in said


def test_a_pattern_without_a_match_is_refused() -> None:
    refused = run(str(SAMPLE_LOGS / "masking" / "numpy"), "--scale", "kernels:*=0.5")
    assert refused.exit_code == 2
    assert "no kernels of this trace match '*'" in refused.output


def test_a_trace_that_the_model_does_not_describe_is_not_simulated(tmp_path: Path) -> None:
    delays = ((1, 0, 8), (2, 200, 8), (3, 400, 8), (4, 600, 50_000))
    rows = [
        row
        for number, at, delay in delays
        for row in (
            ["cuda_runtime", "cudaLaunchKernel", at, 5, {"correlation": number}],
            ["kernel", "gemm", at + delay, 10, {"correlation": number}],
        )
    ]
    path = tracebuild.write(tracebuild.document(rows=rows), tmp_path / "worker.1.pt.trace.json")
    refused = run(str(path))
    assert refused.exit_code == 2
    assert "off its recorded end" in refused.output


def test_workers_are_an_option_with_its_assumption() -> None:
    log = str(SAMPLE_LOGS / "synthetic_dataloader" / "fault")
    output = run(log, "--workers", "4", "--cores", "8").output
    assert output.startswith("The step takes 28.7 ms instead of 51.4 ms")
    assert "4 workers and the loop with 1 computing thread share 8 cores" in output


def test_a_trace_without_a_loader_has_no_workers() -> None:
    refused = run(str(SAMPLE_LOGS / "masking" / "tensor"), "--workers", "4")
    assert refused.exit_code == 2
    assert refused.output == "stepscope: no batch was fetched from a DataLoader\n"


def events_by_process(path: Path) -> dict[str, list[dict[str, Any]]]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    return {
        name: [event for event in events if event["pid"] == process and event["ph"] == "X"]
        for process, name in names.items()
    }


def test_the_written_trace_has_every_event_as_recorded_and_as_simulated(tmp_path: Path) -> None:
    log, path = str(SAMPLE_LOGS / "synthetic_item_sync" / "fault"), tmp_path / "out.json.gz"
    assert run(log, "--device", "0.5", "--trace", str(path)).exit_code == 0
    by_process = events_by_process(path)
    assert list(by_process) == [
        "Host, recorded",
        "Host, simulated",
        "Device 0, recorded",
        "Device 0, simulated",
    ]
    [trace] = stepscope.load(log).workers
    before, after = by_process["Device 0, recorded"], by_process["Device 0, simulated"]
    assert len(before) == len(after) == len(trace.device_events)
    starts = (trace.device_events["start_ns"] / 1000).tolist()
    assert [event["ts"] for event in before] == pytest.approx(starts)
    for one, other in zip(before, after, strict=True):
        assert one["name"] == other["name"]
        assert other["dur"] == pytest.approx(one["dur"] / 2, abs=0.001)


def test_unchanged_the_written_trace_has_the_recorded_times_twice(tmp_path: Path) -> None:
    path = tmp_path / "out.json.gz"
    stepscope.whatif(SAMPLE_LOGS / "dataloader" / "no_workers", output=path)
    by_process = events_by_process(path)
    for event in by_process["Host, simulated"]:
        event["pid"] = 1
    assert by_process["Host, simulated"] == by_process["Host, recorded"]


def test_in_python_changes_are_texts_or_data() -> None:
    [trace] = stepscope.load(SAMPLE_LOGS / "synthetic_item_sync" / "fault").workers
    rows = np.arange(len(trace.device_events))
    by_text = stepscope.whatif(trace, "kernels:*=0.5").prediction
    by_data = stepscope.whatif(trace, ScaleDevice(rows=rows, factor=0.5)).prediction
    assert by_text.simulated_ns == by_data.simulated_ns
    assert str(stepscope.whatif(trace)).startswith("The step takes 10.9 ms, as recorded.")


def test_a_run_of_several_traces_is_refused_by_their_names() -> None:
    with pytest.raises(UsageError, match="pass one of its `workers`"):
        stepscope.whatif(SAMPLE_LOGS / "ranks" / "balanced")
