"""Which kernels belong to products of matrices, and of what type they are."""

import tracebuild
from loading import trace_of
from stepscope.analyses.operators.product_kernels import product_kernels
from stepscope.model.trace import Trace

SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4>(int)"
NVJET = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT"


def recorded(*actions: dict[str, object], machine: str = "h100") -> Trace:
    schedule = {"machine": machine, "record": ["shapes"], "actions": list(actions)}
    return trace_of(document=tracebuild.document(schedule=schedule))


def operator(name: str, written: str, *body: dict[str, object]) -> dict[str, object]:
    return {
        "op": name,
        "dims": [[8, 8], [8, 8]],
        "types": [written, written],
        "body": list(body),
    }


def found(trace: Trace) -> list[tuple[str, str, bool]]:
    products = product_kernels(trace)
    names = trace.device_events["name"].astype(object).to_numpy()[products.rows]
    types = products.data_type.astype(object)
    return [
        (str(name), str(of), bool(multiplies))
        for name, of, multiplies in zip(names, types, products.multiplies, strict=True)
    ]


def test_a_kernel_is_of_the_type_of_its_operators_operands() -> None:
    trace = recorded(operator("aten::mm", "c10::BFloat16", {"kernel": "mine", "us": 10}))
    assert found(trace) == [("mine", "bfloat16", False)]


def test_the_name_of_a_product_is_believed_before_the_operands() -> None:
    trace = recorded(operator("aten::mm", "float", {"kernel": NVJET, "us": 10}))
    assert found(trace) == [(NVJET, "bfloat16", True)]


def test_float32_on_matrix_units_is_rounded_here_and_not_there() -> None:
    trace = recorded(
        operator("aten::mm", "float", {"kernel": TF32, "us": 10}, {"kernel": SGEMM, "us": 10})
    )
    assert found(trace) == [(TF32, "tf32", True), (SGEMM, "float32", True)]
    mfma = "Cijk_Ailk_Bljk_SB_MT32x32x32_MI16x16x4x1_SN"
    amd = recorded(operator("aten::mm", "float", {"kernel": mfma, "us": 10}), machine="mi250")
    assert found(amd) == [(mfma, "float32", True)]


def test_what_converts_for_a_product_belongs_to_no_product() -> None:
    cast = operator("aten::to", "float", {"kernel": "copy", "us": 10})
    trace = recorded(operator("aten::linear", "float", cast, {"kernel": SGEMM, "us": 30}))
    assert found(trace) == [(SGEMM, "float32", True)]


def test_the_share_is_of_all_kernels_of_the_device() -> None:
    trace = recorded(
        operator("aten::mm", "float", {"kernel": SGEMM, "us": 30}),
        operator("aten::relu", "float", {"kernel": "relu", "us": 10}),
    )
    products = product_kernels(trace)
    assert products.share(products.of_type("float32")) == 0.75
    assert products.total_ns(products.of_type("float32", "tf32")) == 30_000


def test_a_replayed_graph_tells_by_names_alone() -> None:
    trace = recorded({"graph": [{"kernel": NVJET, "us": 5}, {"kernel": "add", "us": 3}]})
    assert found(trace) == [(NVJET, "bfloat16", True)]
    assert product_kernels(trace).calls.tolist() == [-1]
