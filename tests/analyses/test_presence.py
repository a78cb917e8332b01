"""Whether a device was at hand: small traces, the whole answer."""

from typing import Any

import loading
import tracebuild
from stepscope.analyses.devices.device_presence import device_code, device_presence, record_device
from stepscope.dialects import all_dialects
from stepscope.model.trace import Trace


def trace_of(*rows: list[Any], devices: tuple[str, ...] = ()) -> Trace:
    properties = [{"id": number, "name": name} for number, name in enumerate(devices)]
    metadata = {"deviceProperties": properties}
    return loading.trace_of(document=tracebuild.document(rows=rows, metadata=metadata))


def test_a_machine_without_a_device_has_none() -> None:
    assert device_presence(trace_of(["cpu_op", "aten::mm", 0, 10])) is None


def test_a_device_in_the_header_is_at_hand_though_nothing_was_recorded_of_it() -> None:
    found = device_presence(
        trace_of(["cpu_op", "aten::mm", 0, 10], devices=("AMD Instinct MI250X",))
    )
    assert found is not None
    assert not found.is_recorded
    assert found.device_names == ("AMD Instinct MI250X",)
    assert found.dialect.name == "rocm"
    assert (found.launch_count, found.host_operators, found.device_operators) == (0, (), ())


def test_operators_tell_where_they_ran() -> None:
    found = device_presence(
        trace_of(
            ["cpu_op", "aten::mkldnn_convolution", 0, 10],
            ["cpu_op", "aten::cudnn_convolution", 20, 10],
            ["cuda_runtime", "cudaLaunchKernel", 22, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaDeviceSynchronize", 40, 5],
        )
    )
    assert found is not None
    assert found.is_recorded
    assert (found.launch_count, found.call_count) == (1, 2)
    assert found.host_operators == ("aten::mkldnn_convolution",)
    assert found.device_operators == ("aten::cudnn_convolution",)


def test_code_is_in_the_vendors_words() -> None:
    dialects = all_dialects()
    assert device_code(dialects["xpu"]) == 'torch.device("xpu")'
    assert device_code(dialects["generic"]) == "torch.accelerator.current_accelerator()"
    assert "ProfilerActivity.XPU" in record_device(dialects["xpu"])
    assert "activities=[" not in record_device(dialects["generic"])
