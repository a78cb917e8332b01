"""ResNet-18 as it is known from ImageNet: four stages of two blocks, each half as large."""

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

STAGES = 4
BLOCKS_A_STAGE = 2
WIDTH = 64


class ResidualBlock(nn.Module):
    """Two normalised 3x3 convolutions beside a shortcut."""

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
    """ResNet-18 of a given width: 64 channels in its first stage make the 11 million parameters.

    Of an image of 32 pixels its first two layers leave 8. Those who use it for small images leave
    the image as large as it is (`keeps_size`): 15 times the work.
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
