"""AMD: roctracer's and HIP's words. Kineto files HIP calls under CUDA's categories."""

import re
from types import MappingProxyType

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="rocm",
    device="GPU",
    vendor="AMD",
    signature=re.compile(r"^(?:cuda_runtime|cuda_driver|Runtime)/hip|^metadata/(?:hip|roc)"),
    blocking_call=re.compile(
        r"^hip(?:Stream|Device|Event|Ctx)Synchronize$|^hipMemcpy(?:WithStream)?$"
    ),
    allocator_call=re.compile(r"^hip(?:Ext)?(?:Malloc|Free|HostAlloc|HostMalloc|HostFree)\b"),
    # hipBLASLt and Tensile name the MFMA tile (MI16x16x16x1), composable kernel and MIOpen xdlops
    # or gtcx; AOTriton's attention and Triton's mixed matmul are made of MFMA
    matrix_unit_kernel=re.compile(
        r"^Cijk_.*_MI\d+x\d+|xdlops|mfma|_wmma|^igemm_\w+_gtcx|^attn_fwd|^bwd_kernel_d|_matmul_ogs_",
        re.IGNORECASE,
    ),
    matrix_unit="Matrix Core",
    memory_device_types=frozenset({1, 6}),
    terms=MappingProxyType(
        {
            "module": "cuda",
            "activity": "ProfilerActivity.CUDA",
            "collectives": "RCCL",
            "graph": "HIP graph",
            "multiprocessor": "CU",
        }
    ),
    environment=MappingProxyType({"devices": "HIP_VISIBLE_DEVICES"}),
)
