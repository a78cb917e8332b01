"""ResNet-18 as for ImageNet: four stages of two blocks, each stage with half the image size."""

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

STAGES = 4
BLOCKS_A_STAGE = 2
WIDTH = 64


class ResidualBlock(nn.Module):
    """Two normalized 3x3 convolutions with a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    @override
    def forward(self, images: Tensor) -> Tensor:
        out = functional.relu(self.bn1(self.conv1(images)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(images))


class ResNet18(nn.Module):
    """ResNet-18 of a given width: with 64 channels in its first stage, 11 million parameters.

    Its first two layers shrink an image of 32 pixels to 8. With `keeps_size`, as is common for
    small images, they keep its size, for 15 times the work.
    """

    def __init__(self, classes: int = 10, width: int = WIDTH, *, keeps_size: bool = False) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.pool: nn.Module = nn.MaxPool2d(3, stride=2, padding=1)
        if keeps_size:
            self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
            self.pool = nn.Identity()
        self.blocks = nn.Sequential(*_blocks(width))
        self.classifier = nn.Linear(width << (STAGES - 1), classes)

    @override
    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(self.pool(functional.relu(self.bn(self.stem(images)))))
        logits: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return logits


def _blocks(width: int) -> Iterator[ResidualBlock]:
    channels = width
    for stage in range(STAGES):
        for block in range(BLOCKS_A_STAGE):
            stride = 2 if stage > 0 and block == 0 else 1
            yield ResidualBlock(channels, width << stage, stride)
            channels = width << stage
