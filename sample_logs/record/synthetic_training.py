"""Parts of a training step, as operators and kernels, for the scenarios."""

from collections.abc import Sequence

import synthetic_kernels as names
from synthesis.build import (
    Action,
    alloc,
    annotation,
    copy,
    dataloader,
    event,
    free,
    kernel,
    op,
    sync,
    thread,
    to_cuda,
    wait,
)

BF16 = "c10::BFloat16"
SIDE_STREAM = 20
FASTEST_KERNEL_US = 4.0  # below this a kernel is all launch and no work
BLOCKS_A_WAVE = 132 * 2


def work(name: str, us: float, *, by_driver: bool = False) -> Action:
    """Return a kernel whose grid fits its length: short kernels do not fill the device."""
    grid = max(4, round(BLOCKS_A_WAVE * us / 20))
    by = {"by": "cuLaunchKernelEx"} if by_driver else {}
    return kernel(name, max(us, FASTEST_KERNEL_US), grid=grid, block=256, registers=64, **by)


def backward(node: str, operator: Action, seq: int) -> Action:
    """Return the work of the autograd engine for one node of the graph."""
    inner = op(node, operator, us=2, seq=seq)
    return op(f"autograd::engine::evaluate_function: {node}", inner, us=3, after_us=1, seq=seq)


def accumulate(dims: Sequence[int]) -> Action:
    """Return the accumulation of one parameter's gradient by the engine."""
    node = "torch::autograd::AccumulateGrad"
    inner = op(node, op("aten::detach", us=2, dims=[dims], types=[BF16]), us=2)
    return op(f"autograd::engine::evaluate_function: {node}", inner, us=2)


def fetch(workers: int, us: float, batch_dims: Sequence[int]) -> Action:
    """Return the loader's next batch; without workers, this process collates it."""
    if workers:
        return dataloader(workers, us)
    collate = op("aten::cat", us=us * 0.06, dims=[[1, *batch_dims[1:]]] * 2, types=["float"] * 2)
    stack = op("aten::stack", collate, us=20, dims=[[]], types=["TensorList"])
    return dataloader(0, us * 0.94, stack)


def upload(dims: Sequence[int], size_bytes: int, *, pinned: bool = True) -> list[Action]:
    """Return the copy of the batch to the device: from pinned memory it does not block."""
    how = {"pinned": True, "non_blocking": True} if pinned else {}
    return [to_cuda(size_bytes, dims, **how)]


def prefetched(dims: Sequence[int], size_bytes: int) -> list[Action]:
    """Return the wait for the batch requested in the previous step, and the next request."""
    return [wait("batch", stream=7), *prefetch(dims, size_bytes)]


def prefetch(dims: Sequence[int], size_bytes: int) -> list[Action]:
    """Return a copy on a separate stream, with an event to wait for."""
    options = {"pinned": True, "non_blocking": True, "stream": SIDE_STREAM}
    return [to_cuda(size_bytes, dims, **options), event("batch", stream=SIDE_STREAM)]


def classifier_loss(batch: int, classes: int, us: float, seq: int) -> tuple[Action, list[Action]]:
    """Return the cross entropy and its backward."""
    dims = [batch, classes]
    log_softmax = op(
        "aten::log_softmax",
        op("aten::_log_softmax", work(names.SOFTMAX, us), us=6, dims=[dims], types=[BF16]),
        us=3,
        dims=[dims],
        types=[BF16],
        seq=seq,
    )
    nll = op("aten::nll_loss_forward", work(names.NLL_LOSS, us / 2), us=6, dims=[dims, [batch]])
    forward = op(
        "aten::cross_entropy_loss",
        log_softmax,
        op("aten::nll_loss_nd", op("aten::nll_loss", nll, us=2), us=2, seq=seq + 1),
        us=4,
        dims=[dims, [batch], []],
        types=[BF16, "long int", ""],
    )
    zero = work(names.elementwise("FillFunctor", 1), us / 2)
    softmax = op("aten::_log_softmax_backward_data", work(names.SOFTMAX_BACKWARD, us), us=6)
    return forward, [
        backward("NllLossBackward0", op("aten::nll_loss_backward", zero, us=6), seq + 1),
        backward("LogSoftmaxBackward0", softmax, seq),
    ]


def run_backward(nodes: Sequence[Action]) -> list[Action]:
    """Return `loss.backward()`: the engine's thread works, this one waits."""
    ones = op("aten::ones_like", work(names.elementwise("FillFunctor", 1), 2), us=8, dims=[[]])
    return [ones, thread("autograd", *nodes)]


def optimizer(kernels: int, us: float) -> list[Action]:
    """Return a fused SGD step, a few kernels over all parameters."""
    add = op("aten::_foreach_add_", us=25, after_us=2, dims=[[]], types=["TensorList"])
    add["body"] = [work(names.MULTI_TENSOR, us) for _ in range(kernels // 2)]
    return [
        annotation("Optimizer.step#SGD.step", add, add, us=30),
        annotation("Optimizer.zero_grad#SGD.zero_grad", us=15),
    ]


def ask_for_loss() -> list[Action]:
    """Return a copy of the loss, without a wait."""
    into = op("aten::copy_", copy("DtoH", 4), us=5, dims=[[], []])
    return [op("aten::to", op("aten::_to_copy", into, us=4), us=3, dims=[[]]), event("loss")]


def take_loss() -> Action:
    """Return the wait for that copy, with the optimizer queued after it."""
    return sync("event", event="loss", us=3)


def keep(name: str, size_bytes: int) -> Action:
    """Return the allocation of an activation for the backward pass."""
    return alloc(size_bytes, name)


def drop(name: str) -> Action:
    """Return the release of that activation."""
    return free(name)
