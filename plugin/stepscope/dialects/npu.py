"""Huawei: Ascend's names, as torch_npu's profiler writes them to `trace_view.json`.

From source and published excerpts of traces, not from a whole trace: torch_npu `profiler/analysis`
(host side, flows) and msprof `analysis/csrc/application/timeline` (CANN, device, collectives). The
file is a bare list of events. Operators are `cpu_op`; all lower layers have no category: CANN's
calls are `AscendCL@…` and `Node@…`; the device's tasks have a `Task Type`; collectives are `hcom_…`
on separate rows. Times are text, in microseconds. Calls and tasks share a `connection_id`. A
layer's process id is the real one, shifted by 10 bits, with the layer's and the device's number in
the low bits. With the task queue, the default, operators launch from another thread: flows
`async_npu` link operator and task.

Traces of other PrivateUse1 devices (`privateuse1_runtime`) are read with generic names.
"""

import re
from types import MappingProxyType

from stepscope.dialects import Dialect, Kind

DIALECT = Dialect(
    name="npu",
    device="NPU",
    vendor="Huawei",
    signature=re.compile(
        r"^(?:privateuse1_(?:runtime|driver))?/(?:AscendCL@|Node@|Runtime@|acl|hccl|npu)"
        r"|^argument/Physic Stream Id$"
    ),
    kinds=MappingProxyType(
        {
            "": (
                (
                    re.compile(r"^(?:AscendCL|Model|Node|Runtime|Communication|Hccl|Api)@"),
                    Kind.RUNTIME_CALL,
                ),
                (re.compile(r"^hcom_", re.IGNORECASE), Kind.KERNEL),
            ),
            "async_npu": ((re.compile(""), Kind.FLOW),),
            "async_task_queue": ((re.compile(""), Kind.FLOW),),
            "hosttodevice": ((re.compile(""), Kind.FLOW),),
        }
    ),
    argument_kinds=MappingProxyType(
        {
            "Task Type": (
                (re.compile(r"MEMCPY|SDMA|PCIE_DMA"), Kind.COPY),
                (
                    re.compile(
                        r"EVENT|NOTIFY|Notify|WAIT|RECORD|WRITE_VALUE|PLACE_HOLDER|STREAM"
                        r"|PROFILER|MODEL_"
                    ),
                    Kind.SYNCHRONIZATION,
                ),
                (re.compile(r"^[A-Z][A-Z_\d ]+$"), Kind.KERNEL),  # AI_CORE, MIX_AIV, AI_CPU, …
            )
        }
    ),
    layer_bits=10,
    device_bits=5,
    operator_flow="async_npu",
    device_name=re.compile(r"\bAscend"),
    blocking_call=re.compile(
        r"^(?:AscendCL@)?aclrt(?:Synchronize(?:Stream|Device|Event)(?:WithTimeout)?|Memcpy)$"
    ),
    allocator_call=re.compile(r"^(?:AscendCL@)?aclrt(?:Malloc|Free)\w*$|^Runtime@DevMalloc"),
    collective=re.compile(r"^hcom|hccl", re.IGNORECASE),
    # matrix products, convolutions and attention run on the Cube unit, other kernels cannot
    matrix_unit_kernel=re.compile(r"MatMul|Conv[23]D|FlashAttention|InferAttention", re.IGNORECASE),
    other_kernel=re.compile(""),
    matrix_unit="Cube unit",
    memory_device_types=frozenset({20}),
    terms=MappingProxyType(
        {
            "module": "npu",
            "activity": "torch_npu.profiler.ProfilerActivity.NPU",
            "collectives": "HCCL",
            "process_group": "hccl",
            "graph": "NPU graph",
            "multiprocessor": "AI Core",
        }
    ),
    environment=MappingProxyType(
        {
            "devices": "ASCEND_RT_VISIBLE_DEVICES",
            "blocking": "ASCEND_LAUNCH_BLOCKING",
            "allocator": "PYTORCH_NPU_ALLOC_CONF",
        }
    ),
)
