"""Large matrix products in float32, then under autocast in bfloat16.

A processor with instructions for bfloat16 (AMX, AVX512-BF16) multiplies at twice the rate of
float32 or more, as do the matrix units of a GPU. Other processors are slower with it.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from feed_forward import feed_forward
from recording import Plan, Target, recorded, seeded, target

ROWS = {"cpu": 512, "cuda": 16_384}
WIDTH = {"cpu": 512, "cuda": 2_048}
DEPTH = 3
PLAN = Plan(wait=3, active=6)


def record(run: Path, device: torch.device, *, bfloat16: bool) -> None:
    """Trains in one precision or the other; the parameters are float32 in both."""
    seeded()
    width = WIDTH[device.type]
    model = feed_forward(DEPTH, width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.rand(ROWS[device.type], width, device=device)
    plan = replace(PLAN, settings=_autocast(device, bfloat16=bfloat16))
    with recorded(run, device, plan) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
                loss = model(rows).square().mean()
            loss.backward()
            optimizer.step()
            profiler.step()


def _autocast(device: torch.device, *, bfloat16: bool) -> dict[str, dict[str, Any]]:
    """Returns settings that the trace handler detects only from Python 3.12 on."""
    region = {"enabled": True, "device": device.type, "dtype": "bfloat16"}
    return {"precision": {"autocast": region if bfloat16 else {"enabled": False}}}


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("float32"), where.device, bfloat16=False)
    record(where.run("bfloat16"), where.device, bfloat16=True)


if __name__ == "__main__":
    main(target("mixed_precision", __doc__))
