"""Work of convolutions."""

from dataclasses import dataclass
from math import prod

from stepscope.analyses.operators.work_inputs import Inputs, Shape, UnknownWorkError, Work


@dataclass(frozen=True)
class Convolution:
    """Places of a convolution's arguments; a negative one: it has no such argument."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1
    output_padding: int = -1

    def __call__(self, inputs: Inputs) -> Work:
        """Count the work of inputs: of each output, or input if transposed, with each weight."""
        x, weight = inputs.shape(0), inputs.shape(1)
        space = len(weight) - 2
        if space < 1 or len(x) != len(weight):
            raise UnknownWorkError
        output = self._output(inputs, x, weight)
        # each element of the side that is not written to meets each weight once
        is_transposed = self._is_transposed(inputs)
        swept = x if is_transposed else output
        return Work(flops=2 * x[0] * prod(swept[2:]) * prod(weight), outputs=(output,))

    def _is_transposed(self, inputs: Inputs) -> bool:
        return self.transposed >= 0 and inputs.numbers(self.transposed, 1) == (1,)

    def _output(self, inputs: Inputs, x: Shape, weight: Shape) -> Shape:
        """Return the result's shape: see the formulas in torch.nn.Conv2d and ConvTranspose2d."""
        space = len(weight) - 2
        places = (self.stride, self.padding, self.dilation)
        stride, padding, dilation = (inputs.numbers(place, space) for place in places)
        if not all(stride):
            raise UnknownWorkError
        reach = [d * (k - 1) for d, k in zip(dilation, weight[2:], strict=True)]
        if self._is_transposed(inputs):
            more = inputs.numbers(self.output_padding, space)
            groups = inputs.numbers(self.output_padding + 1, 1)[0]
            sizes = [
                (n - 1) * s - 2 * p + r + m + 1
                for n, s, p, r, m in zip(x[2:], stride, padding, reach, more, strict=True)
            ]
            return (x[0], weight[1] * groups, *(max(size, 0) for size in sizes))
        sizes = [
            (n + 2 * p - r - 1) // s + 1
            for n, s, p, r in zip(x[2:], stride, padding, reach, strict=True)
        ]
        return (x[0], weight[0], *(max(size, 0) for size in sizes))


def conv2d(inputs: Inputs) -> Work:
    """`conv2d`, which torch counts for batches of images only."""
    for place in (0, 1):
        inputs.shape(place, rank=4)
    return Convolution(stride=3, padding=4, dilation=5)(inputs)


def convolution_backward(inputs: Inputs) -> Work:
    """Count each wanted gradient as the forward convolution: it has the same products to add."""
    grad, x, weight = (inputs.shape(place) for place in range(3))
    if not 3 <= len(weight) == len(x) == len(grad):
        raise UnknownWorkError
    wanted = inputs.numbers(10, 3)
    swept = x if inputs.numbers(7, 1) == (1,) else grad
    flops = 2 * x[0] * prod(swept[2:]) * prod(weight) * (wanted[0] + wanted[1])
    written = (x, weight, grad[1:2])
    outputs = tuple(shape for shape, is_wanted in zip(written, wanted, strict=True) if is_wanted)
    return Work(flops=flops, outputs=outputs)
