"""Models for images of CIFAR-10's shape, and random images for them."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

CLASSES = 10
IMAGE_SHAPE = (3, 32, 32)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    @override
    def forward(self, images: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(images)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(images))


class CifarResNet(nn.Module):
    """A ResNet of depth 6n + 2, as in section 4.2 of its paper.

    It has three stages of `depth // 6` blocks; each stage halves the image and doubles the width.
    """

    def __init__(self, depth: int = 8, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(*_blocks(depth // 6, width))
        self.classifier = nn.Linear(4 * width, CLASSES)

    @override
    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(functional.relu(self.bn(self.stem(images))))
        logits: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return logits


def _blocks(per_stage: int, width: int) -> Iterator[BasicBlock]:
    channels = width
    for stage in range(3):
        for block in range(per_stage):
            stride = 2 if stage > 0 and block == 0 else 1
            yield BasicBlock(channels, width << stage, stride)
            channels = width << stage


def small_conv_net() -> nn.Sequential:
    """Builds a net so small that its operators cost as much as their arithmetic."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 8 * 8, CLASSES),
    )


def made_images(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Makes `count` images and labels of CIFAR-10's shape from the current seed."""
    images = torch.rand(count, *IMAGE_SHAPE, device=device, dtype=torch.get_default_dtype())
    return images, torch.randint(CLASSES, (count,), device=device)
