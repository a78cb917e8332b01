"""NVIDIA: CUPTI's names."""

import re
from types import MappingProxyType

from stepscope.dialects import ORDINARY_KERNEL, Dialect

MATRIX_UNIT = (
    # torch-tb-profiler's list (tensor_core.py): cuBLAS and cuDNN up to Ampere
    r"[dhis](?:884|8816|8832|1688|16816|16832|16864)(?!\d)|hmma|16816|dgrad_1x1_stride_2x2"
    r"|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|direct_group|c1688"
    r"|xmma_(?:sparse_|warp_specialized_)?(?:implicit_)?(?:gemm|conv)"
    # later: any xmma kernel, nvjet (cuBLAS since Hopper), cutlass 2 and 3, CuTe's instructions
    r"|sm\d+_xmma|nvjet|[tT]ensor[oO]p|_tensor\d+x\d+x\d+|cutlass3x_sm(?:90|1[0-2]\d)"
    r"|MainloopSm(?:90|1[0-2]\d)|SM(?:70|75|80|89|90|1[0-2]\d)(?:::MMA)?_\d+x\d+x\d+_|_m\d+n\d+k\d+"
    r"|wgmma|tcgen05|[gG][mM][mM][aA]_|Gmma|UMMA|_wmma|\bwmma|hgmma|igmma|qgmma|utcmma"
    # TensorRT-LLM's products (`bmm_…_sm100f`) and attention; DeepGEMM, Marlin, Machete
    r"|^bmm_\w+_sm1\d\d|^gemm_\w+_sm1\d\d|fmhaSm\d+|fmha_v2_\w{0,60}flash_attention"
    r"|deep_gemm::\w{0,60}gemm|\b[mM]arlin\w{0,60}(?:::[mM]arlin\w{0,60})?<|machete::"
    # attention: flash 2 to 4, cutlass' in torch, cuDNN's, flashinfer's prefill
    r"|flash_(?:fwd|bwd)(?!\w{0,60}(?:combine|dot_do_o|convert_d))"
    r"|FlashAttention(?:Forward|Backward)Sm|FlashAttn(?:Fwd|Bwd)Sm\d+"
    r"|fmha_cutlass[FB]_(?:b?f16_\w{0,60}_sm(?:7|8)\d|f32_\w{0,60}_sm80)|fmhaKernel"
    r"|cudnn_generated_fort_native_sdpa|flashinfer::\w{0,60}Prefill\w{0,60}Kernel"
)
NO_MATRIX_UNIT = (
    # cuBLAS and cuDNN in single steps: `ampere_sgemm_…`, `volta_scudnn_…`, `volta_gcgemm_…`
    r"^(?:cudnn_)?(?:infer_)?(?:maxwell|pascal|volta|turing|ampere)_(?:fp16_)?"
    r"[a-z]{0,2}(?:gemm|cudnn)|_scudnn_|gem[mv]\w{0,60}_kernel|gemv\w{0,60}::kernel|gemvx::|gemmSN_|sgemm_largek|splitKreduce"
    r"|(?:im|ex)plicit_convolve_sgemm|wgrad_alg\d_engine|dgrad_engine|dgrad2d|\bfft[12]d_|[wW]inograd"
    r"|\bcudnn(?:_\w{0,60})?::|\bcask_\w{0,60}::|\bcublas\w{0,60}::|epilogue::impl"
    r"|(?:nchw|nhwc)To(?:Nchw|Nhwc)Kernel"
    r"|ReduceSplitK|scal_kernel|dot_kernel|reduce_1Block|fmha_cutlass[FB]_"
    r"|flash_(?:fwd|bwd)_\w{0,60}(?:combine|dot_do_o|convert_d)|FlashAttn(?:Fwd|Bwd)(?:Combine|P)"
    r"|flashinfer::(?:\w{0,60}Decode\w{0,60}Kernel|norm::|activation::|sampling::)|paged_attention_v[12]"
    r"|\bvllm::(?:rms_norm|rotary|fused_add|reshape_and_cache|act_and_mul|topk|moe::|scaled_fp8_quant"
    r"|paged_attention|merge_attn_states|cross_device)|\bmoe::dev::|tensorrt_llm::kernels::quantize"
)

DIALECT = Dialect(
    name="cuda",
    device="GPU",
    vendor="NVIDIA",
    signature=re.compile(r"^(?:cuda_runtime|cuda_driver|Runtime)/cu|^metadata/cu(?:pti|da)_"),
    device_name=re.compile(r"\b(?:NVIDIA|Tesla|GeForce|Quadro|TITAN)\b"),
    blocking_call=re.compile(r"^cu\w*(?:Stream|Device|Event|Ctx)Synchronize$|^cudaMemcpy$"),
    staged_copy_call=re.compile(r"MemcpyAsync"),
    allocator_call=re.compile(r"^cuda(?:Malloc|Free|HostAlloc|FreeHost|MallocHost|HostMalloc)\b"),
    # `sm80_xmma_gemm_f32f32_…_ffma_…`, `cutlass_80_simt_sgemm_…`
    plain_arithmetic=re.compile(r"_[dfh]fma2?_|_simt_|_dp4a_|OpClassSimt"),
    plain_product=re.compile(
        # `ampere_sgemm_128x64_nn`, `cutlass_80_simt_sgemm_…`; not vectors: memory limits those
        r"(?<![a-z])[a-z]?sgemm(?:_|$)|_simt_\w*gemm|gemmSN_|_gemm_\w*_ffma_"
    ),
    alignment=re.compile(r"_align(\d{1,2})(?!\d)"),
    aligned_bytes=16,
    older_matrix_unit_kernel=re.compile(r"cutlass_7[05]_"),
    matrix_unit_kernel=re.compile(MATRIX_UNIT),
    other_kernel=re.compile(f"{ORDINARY_KERNEL}|{NO_MATRIX_UNIT}"),
    operand_types=(
        (
            re.compile(r"_bf16_|bf16bf16|^bmm_\w*?_?Bfloat16_Bfloat16|^nvjet_(?:sm\d+_)?t"),
            "bfloat16",
        ),
        (re.compile(r"_f?p?16_s(?:884|1688|16816)|_h(?:884|1688|16816)"), "float16"),
        (re.compile(r"_f16f16|_hgemm_|^nvjet_(?:sm\d+_)?h|_gemm_fp16_"), "float16"),
        (re.compile(r"tf32|_s1688(?!cudnn_fp16)"), "tf32"),
        (re.compile(r"e4m3e4m3|[qQ]kvE4m3"), "float8_e4m3fn"),
        (re.compile(r"_i(?:8816|16816|16832)|_int8_"), "int8"),
        (re.compile(r"_d884|f64f64|_dgemm_"), "float64"),
        (re.compile(r"_[gc]?c(?:gemm|cudnn)_"), "complex64"),
        (re.compile(r"_s(?:gemm|cudnn)_|f32f32|_f32_"), "float32"),
    ),
    layout_kernel=re.compile(r"n(?:chw|hwc)To(?:Folded)?N(?:chw|hwc)"),
    generic_convolution=re.compile(
        # cuDNN's engines for any shape, and its transforms (complex products)
        r"dgrad_engine|dgrad2d_alg\d|wgrad_alg\d_engine|(?:im|ex)plicit_convolve_sgemm|_gcgemm_"
        r"|\bfft2d_[cr]2[cr]"
    ),
    float32_on_matrix_unit="tf32",
    matrix_unit="Tensor Core",
    records_pageable=True,
    records_occupancy=True,
    memory_device_types=frozenset({1}),
    terms=MappingProxyType(
        {
            "module": "cuda",
            "activity": "ProfilerActivity.CUDA",
            "collectives": "NCCL",
            "process_group": "nccl",
            "graph": "CUDA graph",
            "sync_warning": 'torch.cuda.set_sync_debug_mode("warn")',
            "multiprocessor": "SM",
        }
    ),
    environment=MappingProxyType(
        {
            "devices": "CUDA_VISIBLE_DEVICES",
            "blocking": "CUDA_LAUNCH_BLOCKING",
            "allocator": "PYTORCH_CUDA_ALLOC_CONF",
        }
    ),
)
