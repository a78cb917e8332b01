"""A network of large matrix products: a transformer's feed-forward blocks."""

from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override


class FeedForward(nn.Module):
    """Two linear layers, to four times the width and back, with a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    @override
    def forward(self, rows: Tensor) -> Tensor:
        changed: Tensor = self.narrow(functional.gelu(self.widen(self.norm(rows))))
        return rows + changed


def feed_forward(depth: int, width: int) -> nn.Sequential:
    """Builds `depth` blocks."""
    return nn.Sequential(*(FeedForward(width) for _ in range(depth)))
