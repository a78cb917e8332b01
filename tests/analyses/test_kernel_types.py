"""The operands' type, as far as a kernel's name tells it. Names from traces of each library."""

import pytest

from stepscope.analyses.core.kernel_names import operand_type
from stepscope.dialects import all_dialects


@pytest.mark.parametrize(
    ("vendor", "kernel", "expected"),
    [
        ("cuda", "ampere_sgemm_128x64_nn", "float32"),
        ("cuda", "volta_scudnn_128x64_relu_interior_nn_v1", "float32"),
        ("cuda", "ampere_gcgemm_64x64_nt", "complex64"),
        ("cuda", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", "float16"),
        ("cuda", "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "float16"),
        ("cuda", "volta_h884gemm_64x128_ldg8_nn", "float16"),
        ("cuda", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn", "bfloat16"),
        ("cuda", "nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", "bfloat16"),
        ("cuda", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "float16"),
        ("cuda", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "bfloat16"),
        ("cuda", "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "tf32"),
        # inputs in single precision, multiplied as tf32
        ("cuda", "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn>()", "tf32"),
        ("cuda", "sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16", "float64"),
        ("cuda", "ampere_i16832gemm_int8_128x128_ldg16_stages_64x3_tn", "int8"),
        ("cuda", "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16", "float8_e4m3fn"),
        ("rocm", "Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN", "float32"),
        ("rocm", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1", "bfloat16"),
        ("rocm", "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256", "bfloat16"),
        ("rocm", "Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1", "float32"),
        ("rocm", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1", "float16"),
        ("rocm", "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x64x16_wt16x16x4", "bfloat16"),
        (
            "rocm",
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0EEvPT0_PT_",
            "bfloat16",
        ),
        (
            "cuda",
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<"
            "c10::Half>, at::detail::Array<char*, 3> >(int, float)",
            "float16",
        ),
        (
            "cuda",
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
            "at::TensorIterator&, double)::{lambda()#3}::operator()() const::{lambda(float)#1}>",
            "float32",
        ),
        (
            "cuda",
            "void at::native::(anonymous namespace)::softmax<c10::complex<float> >()",
            "complex64",
        ),
        # what says nothing of it
        (
            "cuda",
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<4u>>(f)",
            None,
        ),
        ("cuda", "void bounds_check_indices_kernel<long>(float const*)", None),
        ("cuda", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", None),
        ("cuda", "triton_poi_fused_add_0", None),
        ("rocm", "attn_fwd", None),
        ("generic", "", None),
    ],
)
def test_types(vendor: str, kernel: str, expected: str | None) -> None:
    assert operand_type(all_dialects()[vendor], kernel) == expected
