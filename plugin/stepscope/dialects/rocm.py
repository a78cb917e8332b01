"""AMD: names of roctracer and HIP. Kineto records HIP calls in CUDA's categories."""

import re
from types import MappingProxyType

from stepscope.dialects import ORDINARY_KERNEL, Dialect

MATRIX_UNIT = (
    # hipBLASLt and rocBLAS (Tensile) name the MFMA's tile: `Cijk_…_MI16x16x16x1_…`
    r"^Cijk_.*_MI[1-9]\d*x\d+"
    # MIOpen's and composable kernel's: xdlops, xdl, gtcx are MFMA, wmma is Radeon's
    r"|xdlops|_xdl\b|_xdl_|mfma|wmma|^igemm_\w+_gtcx"
    # composable kernel's tile engine: attention and products, without their preparation
    r"|^(?:void |_ZN7)?ck_tile.*(?:Fmha(?:Fwd(?!(?:SplitKV)?Combine)|BwdDQDKDV)\w{0,60}Kernel"
    r"|[\d:]GemmKernel|UniversalGemm|FlatmmKernel|FusedMoeGemm|GroupedGemm|WarpGemm)"
    # aiter's assembler: attention, mixtures of experts, products
    r"|^_ZN5aiter\d+(?:fmha_[fb]wd|fmoe_|\w*gemm_|mla_[ap]|pa_[bf])"
    r"|^aiter::(?:fmha_[fb]wd|fmoe_|\w*gemm_)"
    # AOTriton's attention and Triton's mixed matmul call tl.dot and are recognized by name
    r"|^attn_fwd|^bwd_kernel_(?:d[kqv]|fuse)|_matmul_ogs_"
)
NO_MATRIX_UNIT = (
    # Tensile's other kernels: no MI in the name, but thread tiles (TT8_8), or preparation
    r"^Cijk_"
    # MIOpen: Winograd and direct convolutions, batch norms, layouts
    r"|^miopenSp3AsmConv_v\d|^miopenGcnAsm|^gcnAsm|^MIOpen|^mlo\w*Pool|^naive_conv|^Im2|^Col2Im"
    r"|^SubTensorOp|^OpTensor|^Op[1-5]dTensor|^batched_transpose_|^transpose_NCHW|^igemm_v4r"
    # composable kernel's norms, routing and reductions; attention's beginnings and ends
    r"|^(?:void |_ZN7)?ck_tile.*(?:Rmsnorm2d|Layernorm2d|MoeSorting|Smoothquant|TopkSoftmax"
    r"|Fmha\w{0,60}(?:Combine|OGradDotO|ConvertQGrad))|^_ZN5aiter\d+\w*(?:norm|quant|topk|act_and_mul)"
    r"|^aiter::\w*(?:norm|quant|topk)"
    r"|^_ZN7sgl_hip10activation|^bwd_preprocess|paged_attention_ll4mi_reduce|store_kvcache"
    r"|\bvllm::(?:rms_norm|rotary|fused_add|reshape_and_cache|act_and_mul|topk|moe::|cross_device"
    r"|paged_attention_v[12]|merge_attn_states)"
)

DIALECT = Dialect(
    name="rocm",
    device="GPU",
    vendor="AMD",
    signature=re.compile(r"^(?:cuda_runtime|cuda_driver|Runtime)/hip|^metadata/(?:hip|roc)"),
    device_name=re.compile(r"\b(?:AMD|Radeon|Instinct)\b"),
    blocking_call=re.compile(
        r"^hip(?:Stream|Device|Event|Ctx)Synchronize$|^hipMemcpy(?:WithStream)?$"
    ),
    allocator_call=re.compile(r"^hip(?:Ext)?(?:Malloc|Free|HostAlloc|HostMalloc|HostFree)\b"),
    matrix_unit_kernel=re.compile(MATRIX_UNIT, re.IGNORECASE),
    other_kernel=re.compile(f"{ORDINARY_KERNEL}|{NO_MATRIX_UNIT}"),
    operand_types=(
        # Tensile: the letter after the two matrices' indices (`Cijk_Alik_Bljk_BBS_BH`)
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_B8"), "float8_e5m2"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_F8"), "float8_e4m3fn"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_B"), "bfloat16"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_H"), "float16"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_X"), "tf32"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_S"), "float32"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_D"), "float64"),
        (re.compile(r"^Cijk_A[a-z]+_B[a-z]+_I8"), "int8"),
        (re.compile(r"_bf16_|_bf16x?bf16|^_ZN\w+?I(?:DF16b|14__hip_bfloat16)"), "bfloat16"),
        (re.compile(r"^igemm_\w+_fp16_|_hd\d+_fp16"), "float16"),
        (re.compile(r"^igemm_\w+_fp32_|_fp32_"), "float32"),
    ),
    # MIOpen: `batched_transpose_16x64_pack_1x4_ediv_1x2_half`, `transpose_NCHW2CNHW_…`
    layout_kernel=re.compile(r"^batched_transpose_\d|^transpose_N(?:CHW|HWC)"),
    generic_convolution=re.compile(r"^naive_conv_|^Im2(?:d2)?Col|^Im3d2Col|^Col2Im"),
    matrix_unit="Matrix Core",
    memory_device_types=frozenset({1, 6}),
    terms=MappingProxyType(
        {
            "module": "cuda",
            "activity": "ProfilerActivity.CUDA",
            "collectives": "RCCL",
            "process_group": "nccl",
            "graph": "HIP graph",
            "sync_warning": 'torch.cuda.set_sync_debug_mode("warn")',
            "multiprocessor": "CU",
        }
    ),
    environment=MappingProxyType(
        {
            "devices": "HIP_VISIBLE_DEVICES",
            "blocking": "AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING",
            "allocator": "PYTORCH_HIP_ALLOC_CONF",
            "channels_last": "PYTORCH_MIOPEN_SUGGEST_NHWC=1",
        }
    ),
)
