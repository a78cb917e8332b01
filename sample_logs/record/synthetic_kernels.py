"""Names of kernels, as an H100 reports them with current PyTorch, cuDNN and cuBLAS."""

CONV_FORWARD = (
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
    "_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
)
CONV_BACKWARD_DATA = (
    "sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
    "_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
)
CONV_BACKWARD_WEIGHT = (
    "cutlass_80_tensorop_bf16_s16816wgrad_optimized_bf16_128x128_32x5_nhwc_align8"
)
BATCH_NORM = (
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<__nv_bfloat16, float, int, 512, true, 1, true>"
    "(cudnnTensorStruct, __nv_bfloat16 const*, cudnnTensorStruct, __nv_bfloat16*)"
)
BATCH_NORM_BACKWARD = (
    "void cudnn::bn_bw_1C11_kernel_new<__nv_bfloat16, float, float2, 512, true, 1>"
    "(float, float, float, float, cudnnTensorStruct, __nv_bfloat16 const*)"
)
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT"
GEMM_BIAS = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"
GEMM_BACKWARD = "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NTN"
FLASH_FORWARD = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false,"
    " cutlass::bfloat16_t>, false, true, false, false, true, true, false, false>"
    "(pytorch_flash::Flash_fwd_params)"
)
FLASH_BACKWARD = (
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64,"
    " 128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t>, false, true, false, false, true,"
    " true, false>(pytorch_flash::Flash_bwd_params)"
)
LAYER_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float,"
    " false>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*)"
)
LAYER_NORM_BACKWARD = (
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<c10::BFloat16,"
    " float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, int)"
)
SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float,"
    " at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*)"
)
SOFTMAX_BACKWARD = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, float, float, c10::BFloat16,"
    " at::native::(anonymous namespace)::LogSoftMaxBackwardEpilogue>(c10::BFloat16*, float const*)"
)
NLL_LOSS = (
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float,"
    " long>(float*, float*, float const*, long const*, float const*, bool, long, long, long)"
)
EMBEDDING = (
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned"
    " int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>)"
)
NORM = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps"
    "<float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float>)"
)
ANY = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, at::native::func_wrapper_t"
    "<bool, at::native::or_kernel_cuda>, unsigned int, bool, 4, 4> >(at::native::ReduceOp<bool>)"
)
MULTI_TENSOR = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous"
    " namespace)::TensorListMetadata<2>, at::native::(anonymous"
    " namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>"
    "(at::native::(anonymous namespace)::TensorListMetadata<2>)"
)


def elementwise(functor: str, arrays: int = 2) -> str:
    """Return the name of the vectorized kernel that applies a functor."""
    of = f"at::native::{functor}<c10::BFloat16>, std::array<char*, {arrays}ul>"
    return f"void at::native::vectorized_elementwise_kernel<4, {of} >(int, {of})"
