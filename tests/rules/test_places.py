"""What a finding is known by again: not its device's number, of which each rank has its own."""

import loading
import tracebuild
from stepscope.advice import rule_outcomes
from stepscope.rules.low_gpu_utilization import RULE


def fingerprints(*devices: int) -> list[str]:
    rows = [
        ["kernel", "gemm", start_us, 20, {"device": device, "correlation": 1}]
        for device in devices
        for start_us in (10, 970)
    ]
    rows.append(["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}])
    trace = loading.trace_of(document=tracebuild.document(rows=rows))
    return [outcome.fingerprint for outcome in rule_outcomes(trace, [RULE])]


def test_an_idle_device_is_known_again_on_another_rank() -> None:
    assert fingerprints(0) == fingerprints(3)


def test_two_idle_devices_are_two_findings() -> None:
    first, second = fingerprints(0, 1)
    assert first != second
