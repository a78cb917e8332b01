"""A small transformer language model: forward, backward, and checks that users often add."""

import synthetic_kernels as names
from synthesis.build import Action, host, item, op
from synthetic_training import (
    BF16,
    accumulate,
    ask_for_loss,
    backward,
    classifier_loss,
    drop,
    keep,
    optimizer,
    run_backward,
    take_loss,
    work,
)

LAYERS = 6
BATCH, LENGTH, WIDTH, WORDS = 8, 512, 768, 16000
ROWS = BATCH * LENGTH
TOKENS = [BATCH, LENGTH]
HIDDEN = [BATCH, LENGTH, WIDTH]
TOKEN_BYTES = 8 * ROWS
NODES_A_LAYER = 10


def linear(name: str, width: int, us: float, seq: int) -> list[Action]:
    """Return a projection of every token."""
    shapes = {"dims": [[width], [ROWS, WIDTH], [WIDTH, width]], "types": [BF16] * 3}
    gemm = op(
        "aten::addmm",
        keep(name, 2 * ROWS * width),
        work(names.GEMM_BIAS, us, by_driver=True),
        us=11,
        **shapes,
    )
    dims = [HIDDEN, [width, WIDTH], [width]]
    return [op("aten::linear", gemm, us=4, after_us=2, dims=dims, types=[BF16] * 3, seq=seq)]


def linear_backward(name: str, width: int, us: float, seq: int) -> list[Action]:
    """Return the two products of a projection's backward."""
    products = [
        op("aten::mm", work(names.GEMM_BACKWARD, us, by_driver=True), us=10, dims=dims)
        for dims in ([[ROWS, width], [width, WIDTH]], [[width, ROWS], [ROWS, WIDTH]])
    ]
    node = op("AddmmBackward0", *products, us=3, seq=seq)
    function = "autograd::engine::evaluate_function: AddmmBackward0"
    return [op(function, node, us=3, seq=seq), drop(name), accumulate([width, WIDTH])]


def pointwise(name: str, kernel_name: str, us: float, seq: int) -> Action:
    """Return an operator that processes all hidden states once."""
    return op(name, work(kernel_name, us), us=8, dims=[HIDDEN], types=[BF16], seq=seq)


def forward(layer: int, checks: list[Action]) -> list[Action]:
    """Return one block: attention and the two projections, each after a normalization."""
    seq = layer * NODES_A_LAYER
    flash = op(
        "aten::_scaled_dot_product_flash_attention",
        op("aten::_flash_attention_forward", work(names.FLASH_FORWARD, 48), us=14),
        us=6,
    )
    heads = [BATCH, 12, LENGTH, 64]
    attention = {"dims": [heads] * 3, "types": [BF16] * 3, "seq": seq + 2}
    gelu = names.elementwise("GeluFunctor")
    add = names.elementwise("CUDAFunctor_add", 3)
    return [
        pointwise("aten::layer_norm", names.LAYER_NORM, 13, seq),
        *linear(f"qkv{layer}", 3 * WIDTH, 62, seq + 1),
        op("aten::scaled_dot_product_attention", flash, us=5, **attention),
        *linear(f"out{layer}", WIDTH, 24, seq + 3),
        pointwise("aten::add", add, 12, seq + 4),
        *checks,
        pointwise("aten::layer_norm", names.LAYER_NORM, 13, seq + 5),
        *linear(f"up{layer}", 4 * WIDTH, 78, seq + 6),
        pointwise("aten::gelu", gelu, 30, seq + 7),
        *linear(f"down{layer}", WIDTH, 78, seq + 8),
        pointwise("aten::add", add, 12, seq + 9),
        *checks,
    ]


def backwards(layer: int) -> list[Action]:
    """Return the engine's nodes for one block, last first."""
    seq = layer * NODES_A_LAYER
    norm = names.LAYER_NORM_BACKWARD
    flash = op(
        "aten::_scaled_dot_product_flash_attention_backward",
        op("aten::_flash_attention_backward", work(names.FLASH_BACKWARD, 122), us=14),
        us=6,
    )
    gelu = work(names.elementwise("GeluBackwardFunctor", 3), 41)
    return [
        *linear_backward(f"down{layer}", WIDTH, 78, seq + 8),
        backward("GeluBackward0", op("aten::gelu_backward", gelu, us=7), seq + 7),
        *linear_backward(f"up{layer}", 4 * WIDTH, 78, seq + 6),
        backward(
            "NativeLayerNormBackward0",
            op("aten::native_layer_norm_backward", work(norm, 31), us=12),
            seq + 5,
        ),
        *linear_backward(f"out{layer}", WIDTH, 24, seq + 3),
        backward("ScaledDotProductFlashAttentionBackward0", flash, seq + 2),
        *linear_backward(f"qkv{layer}", 3 * WIDTH, 62, seq + 1),
        backward(
            "NativeLayerNormBackward0",
            op("aten::native_layer_norm_backward", work(norm, 31), us=12),
            seq,
        ),
    ]


def is_finite_check() -> list[Action]:
    """Return `if torch.isnan(hidden).any():`, which waits for the result."""
    isnan = op("aten::isnan", work(names.elementwise("CompareNEFunctor", 3), 11), us=8)
    reduce = op("aten::any", work(names.ANY, 8), us=9)
    decide = op("aten::is_nonzero", item(1), us=2)
    return [isnan, reduce, decide, host(15)]


def gradient_norm_logging() -> list[Action]:
    """Return `log(p.grad.norm().item())` for every weight."""
    norm = op("aten::linalg_vector_norm", work(names.NORM, 9), us=11, dims=[[4 * WIDTH, WIDTH]])
    return [norm, item(4), host(20)] * (4 * LAYERS)


def gradient_norms() -> list[Action]:
    """Return the same norms in one operator, without a copy to the host."""
    return [op("aten::_foreach_norm", work(names.MULTI_TENSOR, 70), us=30, dims=[[]])]


def training_step(
    *, begin: list[Action], checks: list[Action], norms: list[Action], end: list[Action]
) -> list[Action]:
    """Return a whole step, with the checks of every block and the logging of gradients."""
    seq = LAYERS * NODES_A_LAYER
    embedding = op(
        "aten::embedding", work(names.EMBEDDING, 16), us=9, dims=[[WORDS, WIDTH], TOKENS]
    )
    blocks = [action for layer in range(LAYERS) for action in forward(layer, checks)]
    loss, loss_backward = classifier_loss(ROWS, WORDS, 140, seq + 2)
    nodes = [
        *loss_backward,
        *linear_backward("words", WORDS, 240, seq),
        *(node for layer in reversed(range(LAYERS)) for node in backwards(layer)),
    ]
    return [
        *begin,
        embedding,
        *blocks,
        *linear("words", WORDS, 240, seq),
        loss,
        *run_backward(nodes),
        *norms,
        *ask_for_loss(),
        *optimizer(8, 110),
        take_loss(),
        *end,
    ]
