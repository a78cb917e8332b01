"""How to send in a few large messages: the fixes of `small-collectives`."""

from stepscope.report import Fix
from stepscope.rules import _collectives
from stepscope.trace import Trace

VERIFY = "Messages a step fall, and so does the exposed time of communication."


def fix(trace: Trace, *, is_ddp: bool) -> Fix:
    """Return how to send in fewer messages, of DDP's buckets, sharded units, or by hand."""
    if is_ddp:
        return Fix(
            summary="Let DDP fill larger buckets.",
            code="model = DDP(model, bucket_cap_mb=25)  # the default; up to 100 on fast links",
            verify=VERIFY,
            caveats=("Too large a bucket begins late: nothing of the backward pass is left then.",),
        )
    if _collectives.wrapper(trace).startswith("FSDP"):
        return Fix(
            summary="Shard larger units: whole blocks, not single layers.",
            code=(
                "for block in model.blocks:   # not each nn.Linear\n"
                "    fully_shard(block)\n"
                "fully_shard(model)"
            ),
            verify=VERIFY,
            caveats=("A unit's parameters are held whole while it runs: more memory.",),
        )
    return TOGETHER


TOGETHER = Fix(
    summary="Send all gradients in a few messages.",
    code=(
        "model = DDP(model)  # reduces gradients in buckets, during the backward pass\n"
        "# or by hand, one message for all of them:\n"
        "flat = torch.cat([grad.flatten() for grad in grads])\n"
        "dist.all_reduce(flat)\n"
        "for grad, part in zip(grads, flat.split([grad.numel() for grad in grads])):\n"
        "    grad.copy_(part.view_as(grad))"
    ),
    verify=VERIFY,
    caveats=("The flat copy needs the memory of all gradients once more.",),
)
