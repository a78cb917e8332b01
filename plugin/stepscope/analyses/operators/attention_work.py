"""Work of attention: scores, and what they weigh; softmax and masks are left out."""

from dataclasses import dataclass

from stepscope.analyses.operators.work_inputs import Inputs, UnknownWorkError, Work


@dataclass(frozen=True)
class Attention:
    """Attention; the operands' first place, and where the lengths of packed sequences are."""

    query: int = 0
    heads_last: bool = False
    """Whether the layout is `[batch, sequence, heads, size]`, not `[batch, heads, sequence, …]`."""
    lengths: int = -1
    is_backward: bool = False

    def __call__(self, inputs: Inputs) -> Work:
        """Count the work of inputs; every key counts for every query, masked or not."""
        if self.lengths >= 0 and self._is_packed(inputs):
            raise UnknownWorkError  # how long each sequence is, is not recorded
        first = self.query
        q, k, v = (inputs.shape(place, rank=4) for place in range(first, first + 3))
        sequence, heads = (1, 2) if self.heads_last else (2, 1)
        if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3] or not k[heads] or q[heads] % k[heads]:
            raise UnknownWorkError
        pairs = q[0] * q[heads] * q[sequence] * k[sequence]
        output = (*q[:3], v[3])
        if self.is_backward:
            # the scores anew, then the gradients of scores, value, query and key
            flops = 2 * pairs * (3 * q[3] + 2 * v[3])
            return Work(flops=flops, outputs=(q, k, v))
        return Work(flops=2 * pairs * (q[3] + v[3]), outputs=(output,))

    def _is_packed(self, inputs: Inputs) -> bool:
        sizes = inputs.shapes[self.lengths] if self.lengths < len(inputs.shapes) else []
        return bool(sizes)
