"""Intel: oneAPI's words, as kineto's plugin `xpupti` records them with PTI.

Known from source and published excerpts of traces, from no whole trace: kineto
`libkineto/src/plugin/xpupti` (names, arguments, which call belongs to which activity) and its
tests, pti-gpu `sdk/src/pti_view.cc` (how copies are named), the APIs' own specifications for what
blocks. Kernels have no stream but `sycl queue` (a number) and `l0 queue` (a handle), and carry no
grid. SYCL's calls (`xpu_runtime`) enclose Level Zero's (`xpu_driver`).
"""

import re
from types import MappingProxyType

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="xpu",
    device="XPU",
    vendor="Intel",
    signature=re.compile(r"^xpu_(?:runtime|driver)/|^argument/(?:sycl|l0) queue$"),
    blocking_call=re.compile(
        r"^(?:urEventWait|urQueueFinish|piEventsWait|piQueueFinish)$"
        r"|^ze(?:CommandQueue|CommandListHost|EventHost|FenceHost)Synchronize$"
    ),
    allocator_call=re.compile(
        r"^(?:ur|piext)USM(?:Device|Host|Shared)Alloc|^(?:ur|piext)USMFree|^zeMem(?:Alloc|Free)"
    ),
    collective=re.compile(r"oneccl|xccl|\bccl(?:::|_)", re.IGNORECASE),
    # oneDNN calls a kernel `gemm_kernel` whether it uses XMX or not
    matrix_unit="XMX engine",
    memory_device_types=frozenset({12}),
    terms=MappingProxyType(
        {
            "module": "xpu",
            "activity": "ProfilerActivity.XPU",
            "collectives": "oneCCL",
            "graph": "SYCL graph",
            "multiprocessor": "Xe core",
        }
    ),
    environment=MappingProxyType({"devices": "ZE_AFFINITY_MASK"}),
)
