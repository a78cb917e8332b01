"""Intel: oneAPI's names, as kineto's plugin `xpupti` records them with PTI.

From source and published excerpts of traces, not from a whole trace: kineto
`libkineto/src/plugin/xpupti` (names, arguments, calls of each activity) and its tests, pti-gpu
`sdk/src/pti_view.cc` (names of copies), the APIs' own specifications for blocking calls. Kernels
have no stream but `sycl queue` (a number) and `l0 queue` (a handle), and no grid. SYCL's calls
(`xpu_runtime`) enclose Level Zero's (`xpu_driver`).
"""

import re
from types import MappingProxyType

from stepscope.dialects import ORDINARY_KERNEL, Dialect

DIALECT = Dialect(
    name="xpu",
    device="XPU",
    vendor="Intel",
    signature=re.compile(r"^xpu_(?:runtime|driver)/|^argument/(?:sycl|l0) queue$"),
    device_name=re.compile(r"\bIntel\b"),
    blocking_call=re.compile(
        r"^(?:urEventWait|urQueueFinish|piEventsWait|piQueueFinish)$"
        r"|^ze(?:CommandQueue|CommandListHost|EventHost|FenceHost)Synchronize$"
    ),
    allocator_call=re.compile(
        r"^(?:ur|piext)USM(?:Device|Host|Shared)Alloc|^(?:ur|piext)USMFree|^zeMem(?:Alloc|Free)"
    ),
    collective=re.compile(r"oneccl|xccl|\bccl(?:::|_)", re.IGNORECASE),
    # XMX's instruction is dpas, its unit the systolic array, used by XeTLA's and SYCL-TLA's
    # kernels. oneDNN uses the names `gemm_kernel`, `gen_conv` and `micro_sdpa` with and without it.
    matrix_unit_kernel=re.compile(
        r"systolic|dpas|XE_\d+x\d+x\d+_|xetla|MainloopXe|XeFMHA|FMHA(?:Prefill|Fwd)?\w{0,60}Xe",
        re.IGNORECASE,
    ),
    other_kernel=re.compile(
        rf"{ORDINARY_KERNEL}|at::native::xpu::|^(?:ref|simple|gen9?)_(?!conv|gemm)\w+"
        r"|^(?:vectorized|generic)_reorder|^xe_(?:softmax|lnorm|eltwise|binary|pool|reduction)"
    ),
    float32_on_matrix_unit="tf32",
    matrix_unit="XMX engine",
    memory_device_types=frozenset({12}),
    terms=MappingProxyType(
        {
            "module": "xpu",
            "activity": "ProfilerActivity.XPU",
            "collectives": "oneCCL",
            "process_group": "xccl",
            "graph": "SYCL graph",
            "multiprocessor": "Xe core",
        }
    ),
    environment=MappingProxyType({"devices": "ZE_AFFINITY_MASK"}),
)
