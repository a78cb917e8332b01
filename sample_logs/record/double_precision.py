"""Inference of ResNet-18 on 128 images, with the default dtype float64, then float32.

Only the forward pass, as in the story: in double precision each convolution runs as torch's own
`aten::thnn_conv2d`, since oneDNN (on CUDA: the tensor cores of cuDNN) does not support float64.
`precision.py` has the same fault in training.
"""

from pathlib import Path

import torch
from torch.profiler import record_function

from recording import Plan, Target, recorded, seeded, target
from resnet import ResNet18

BATCH = 128
# Smaller images make double precision look worse than it is: ten times at 32 pixels.
SIDE = 96
PLAN = Plan(wait=0, warmup=1, active=5)


def record(run: Path, dtype: torch.dtype, device: torch.device) -> None:
    """Runs a model of the default dtype `dtype` on the same images in every step."""
    seeded()
    torch.set_default_dtype(dtype)
    model = ResNet18().to(device).eval()
    images = torch.rand(BATCH, 3, SIDE, SIDE, device=device)
    with torch.inference_mode(), recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            with record_function("model_inference"):
                model(images)
            profiler.step()
    torch.set_default_dtype(torch.float32)


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("float64"), torch.float64, where.device)
    record(where.run("float32"), torch.float32, where.device)


if __name__ == "__main__":
    main(target("double_precision", __doc__))
