"""NVIDIA: CUPTI's words."""

import re
from types import MappingProxyType

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="cuda",
    device="GPU",
    vendor="NVIDIA",
    signature=re.compile(r"^(?:cuda_runtime|cuda_driver|Runtime)/cu|^metadata/cu(?:pti|da)_"),
    blocking_call=re.compile(r"^cu\w*(?:Stream|Device|Event|Ctx)Synchronize$|^cudaMemcpy$"),
    staged_copy_call=re.compile(r"MemcpyAsync"),
    allocator_call=re.compile(r"^cuda(?:Malloc|Free|HostAlloc|FreeHost|MallocHost|HostMalloc)\b"),
    # torch-tb-profiler's list (tensor_core.py), then what came after it: Hopper's and Blackwell's
    # nvjet, cutlass and cuDNN names, flash attention, and mma instructions in the name.
    matrix_unit_kernel=re.compile(
        r"h884|s884|h1688|s1688|hmma|i8816|16816|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel"
        r"|conv1x1|conv2d_c1_k1|direct_group|xmma_implicit_gemm|xmma_sparse_conv"
        r"|xmma_warp_specialized_implicit_gemm|xmma_gemm|xmma_sparse_gemm|c1688"
        r"|nvjet|[tT]ensor[oO]p|_tensor\d+x\d+x\d+|sm90_xmma|sm100_xmma|cutlass3x_sm(?:90|100)"
        r"|_wgmma|_tcgen05|gmma|^bmm_\w+_sm1\d\d|fmhaSm\d+"
        r"|flash_(?:fwd|bwd)|fmha_cutlass|fmhaKernel|cudnn_generated_fort_native_sdpa"
    ),
    matrix_unit="Tensor Core",
    tells_pageable=True,
    tells_occupancy=True,
    memory_device_types=frozenset({1}),
    terms=MappingProxyType(
        {
            "module": "cuda",
            "activity": "ProfilerActivity.CUDA",
            "collectives": "NCCL",
            "graph": "CUDA graph",
            "multiprocessor": "SM",
        }
    ),
    environment=MappingProxyType({"devices": "CUDA_VISIBLE_DEVICES"}),
)
