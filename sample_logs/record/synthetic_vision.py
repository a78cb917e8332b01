"""A residual network for images: forward, and backward in reverse, at any batch size."""

from dataclasses import dataclass

import synthetic_kernels as names
from synthesis.build import Action, op
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

# Channels in and out, side of the square image, microseconds of the convolution at batch 128.
STAGES = ((64, 64, 56, 340), (128, 128, 28, 300), (256, 256, 14, 290), (512, 512, 7, 310))
STEM = (3, 64, 112, 520)
FULL_BATCH = 128
CLASSES = 1000


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One convolution with its normalization and activation."""

    number: int
    channels_in: int
    channels_out: int
    side: int
    us: float  # of the convolution, at this batch
    batch: int

    @property
    def dims(self) -> list[int]:
        """Shape of the layer's output."""
        return [self.batch, self.channels_out, self.side, self.side]

    @property
    def size_bytes(self) -> int:
        """Bytes of the layer's output in bfloat16."""
        return 2 * self.batch * self.channels_out * self.side**2


def layers(batch: int, blocks_a_stage: int) -> list[Layer]:
    """Return the network's layers; a kernel's duration grows with the batch."""
    shapes = [STEM, *(stage for stage in STAGES for _ in range(blocks_a_stage))]
    scale = batch / FULL_BATCH
    return [
        Layer(
            number=number,
            channels_in=channels_in,
            channels_out=channels_out,
            side=side,
            us=us * scale,
            batch=batch,
        )
        for number, (channels_in, channels_out, side, us) in enumerate(shapes)
    ]


def image_dims(batch: int) -> list[int]:
    """Shape of a batch of images."""
    return [batch, 3, 224, 224]


def image_bytes(batch: int) -> int:
    """Bytes of a batch of images in float32."""
    return 4 * batch * 3 * 224 * 224


def forward(layer: Layer) -> list[Action]:
    """Return conv2d, batch_norm and relu, each nested as PyTorch's calls are."""
    seq = 3 * layer.number
    inputs = [layer.batch, layer.channels_in, layer.side, layer.side]
    weights = [layer.channels_out, layer.channels_in, 3, 3]
    shapes = {"dims": [inputs, weights, []], "types": [BF16, BF16, ""]}
    convolution = op(
        "aten::cudnn_convolution",
        keep(f"conv{layer.number}", layer.size_bytes),
        work(names.CONV_FORWARD, layer.us, by_driver=True),
        us=11,
        dims=[inputs, weights],
        types=[BF16, BF16],
    )
    chain = op("aten::convolution", op("aten::_convolution", convolution, us=3), us=3, seq=seq)
    normalise = op("aten::cudnn_batch_norm", work(names.BATCH_NORM, layer.us * 0.5), us=9)
    clamp = op("aten::clamp_min_", work(names.elementwise("ClampFunctor"), layer.us * 0.28), us=5)
    return [
        op("aten::conv2d", chain, us=3, **shapes),
        op(
            "aten::batch_norm",
            op("aten::_batch_norm_impl_index", normalise, us=3, seq=seq + 1),
            us=3,
            dims=[layer.dims, [layer.channels_out]],
            types=[BF16, "float"],
        ),
        op("aten::relu_", clamp, us=3, dims=[layer.dims], types=[BF16], seq=seq + 2),
    ]


def backwards(layer: Layer) -> list[Action]:
    """Return the engine's nodes for one layer, last first."""
    seq = 3 * layer.number
    weights = [layer.channels_out, layer.channels_in, 3, 3]
    threshold = work(names.elementwise("ThresholdFunctor", 3), layer.us * 0.36)
    normalise = work(names.BATCH_NORM_BACKWARD, layer.us * 0.75)
    convolution = op(
        "aten::convolution_backward",
        work(names.CONV_BACKWARD_DATA, layer.us * 1.05, by_driver=True),
        work(names.CONV_BACKWARD_WEIGHT, layer.us * 0.95),
        us=14,
        after_us=3,
        dims=[layer.dims, layer.dims, weights],
        types=[BF16] * 3,
    )
    return [
        backward("ReluBackward0", op("aten::threshold_backward", threshold, us=6), seq + 2),
        backward(
            "CudnnBatchNormBackward0",
            op("aten::cudnn_batch_norm_backward", normalise, us=9),
            seq + 1,
        ),
        backward("ConvolutionBackward0", convolution, seq),
        drop(f"conv{layer.number}"),
        accumulate(weights),
    ]


def head(batch: int, seq: int) -> tuple[list[Action], list[Action]]:
    """Return the classifier with its loss, and their backward."""
    scale = batch / FULL_BATCH
    shapes = {"dims": [[CLASSES], [batch, 512], [512, CLASSES]], "types": [BF16] * 3}
    gemm = op("aten::addmm", work(names.GEMM_BIAS, 60 * scale, by_driver=True), us=12, **shapes)
    loss, loss_backward = classifier_loss(batch, CLASSES, 20 * scale, seq + 1)
    linear = op("aten::linear", gemm, us=3, seq=seq, **shapes)
    multiply = op("aten::mm", work(names.GEMM_BACKWARD, 55 * scale, by_driver=True), us=12)
    nodes = [*loss_backward, backward("AddmmBackward0", multiply, seq)]
    return [linear, loss], [*nodes, accumulate([CLASSES, 512])]


def training_step(
    batch: int,
    *,
    begin: list[Action],
    blocks_a_stage: int = 4,
    middle: list[Action] | None = None,
    optimizer_us: float = 140,
) -> list[Action]:
    """Return a whole step: its begin, the forward pass (with work in its middle), and the rest.

    The loss is fetched without waiting, and looked at when the optimizer is already queued: the
    host stays one optimizer ahead of the device, as a well-written loop does.
    """
    network = layers(batch, blocks_a_stage)
    body = [forward(layer) for layer in network]
    if middle:
        body.insert(len(body) // 2, middle)
    head_forward, head_backward = head(batch, 3 * len(network))
    nodes = [*head_backward, *(node for layer in reversed(network) for node in backwards(layer))]
    return [
        *begin,
        *(action for part in body for action in part),
        *head_forward,
        *run_backward(nodes),
        *ask_for_loss(),
        *optimizer(8, optimizer_us),
        take_loss(),
    ]
