"""How to send in a few large messages: the fixes of `small-collectives`."""

from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.findings import Fix
from stepscope.model.trace import Trace
from stepscope.rules.shared import collective_costs

VERIFY = "Messages a step fall, and so does the exposed time of communication."


def fix(trace: Trace, *, is_ddp: bool) -> Fix:
    """Return how to send in fewer messages, of DDP's buckets, sharded units, or by hand."""
    if is_ddp:
        return Fix(
            "Let DDP fill larger buckets.",
            f"model = DDP(model, {_larger(trace)}",
            verify=VERIFY,
            caveats=("Too large a bucket begins late: nothing of the backward pass is left then.",),
        )
    if collective_costs.wrapper(trace).startswith("FSDP"):
        return Fix(
            "Shard larger units: whole blocks, not single layers.",
            "for block in model.blocks:   # not each nn.Linear\n"
            "    fully_shard(block)\n"
            "fully_shard(model)",
            verify=VERIFY,
            caveats=("A unit's parameters are held whole while it runs: more memory.",),
        )
    return TOGETHER


def _larger(trace: Trace) -> str:
    """Return the argument of larger buckets: torch's default, or twice what was recorded."""
    now = recorded_settings(trace).distributed.bucket_cap_mb
    if now is None:
        return f"bucket_cap_mb={DEFAULT})  # the default; up to 100 on fast links"
    return f"bucket_cap_mb={max(DEFAULT, round(2 * now))})  # now {now:.3g} ({RECORDED})"


DEFAULT = 25
"""DDP's `bucket_cap_mb`."""
TOGETHER = Fix(
    "Send all gradients in a few messages.",
    "model = DDP(model)  # reduces gradients in buckets, during the backward pass\n"
    "# or by hand, one message for all of them:\n"
    "flat = torch.cat([grad.flatten() for grad in grads])\n"
    "dist.all_reduce(flat)\n"
    "for grad, part in zip(grads, flat.split([grad.numel() for grad in grads])):\n"
    "    grad.copy_(part.view_as(grad))",
    verify=VERIFY,
    caveats=("The flat copy needs the memory of all gradients once more.",),
)
