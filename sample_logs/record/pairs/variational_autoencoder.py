"""A convolutional variational autoencoder trains with an annealed loss."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import copy
import math
from collections.abc import Callable, Set

import torch
from torch import Tensor, nn
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "elementwise": Fault("unfused-elementwise"),
    "copied_state": Fault("state-copied-each-step", kind="state dict copied in the step"),
    "decoded_one_by_one": Fault("model-called-per-sample", kind="loop over samples"),
    "zero_fill": Fault("zero-grad-memset"),
}
PAIRS = (
    ("elementwise",),
    ("copied_state",),
    ("decoded_one_by_one",),
    ("zero_fill",),
    ("elementwise", "copied_state"),
    ("copied_state", "decoded_one_by_one", "zero_fill"),
)
SEED = 20_274
BATCH = 16
SIDE = 32
LATENT = 128
WIDTH = 1024
LossT = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Autoencoder(nn.Module):
    """Means and logarithms of variances of a latent code, and images from codes."""

    def __init__(self, *, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 8 * 8, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, 2 * LATENT),
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 32 * 8 * 8),
            nn.ReLU(),
            nn.Unflatten(1, (32, 8, 8)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 6, 4, stride=2, padding=1),
        )

    def decoded(self, codes: Tensor) -> Tensor:
        """Returns mean and spread of each pixel."""
        if self.one_by_one:
            return torch.cat([self.decoder(code.unsqueeze(0)) for code in codes])
        pixels: Tensor = self.decoder(codes)
        return pixels

    @override
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        codes = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoded(codes), mean, log_variance


def negative_bound(pixels: Tensor, images: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Returns the loss: logistic mixtures of pixels, and the divergence of codes, written out."""
    location, raw_scale = pixels.chunk(2, dim=1)
    scale = torch.log(1 + torch.exp(raw_scale)) + 1e-3
    error = (images - location) / scale
    student = torch.log(1 + error**2 / 4) * 2.5 + torch.log(scale) + 0.5 * math.log(4 * math.pi)
    logistic = torch.abs(error) + 2 * torch.log(1 + torch.exp(-torch.abs(error)))
    smooth = torch.sqrt(error**2 + 1e-6) - 1e-3 + torch.tanh(error) ** 2 / 2
    reconstruction = (0.5 * student + 0.3 * logistic + 0.2 * smooth).sum(dim=(1, 2, 3)).mean()
    divergence = -0.5 * (1 + log_variance - mean**2 - torch.exp(log_variance)).sum(dim=1).mean()
    return reconstruction + divergence


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    model = Autoencoder(one_by_one="decoded_one_by_one" in faults)
    loss: LossT = negative_bound if "elementwise" in faults else torch.compile(negative_bound)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    images = torch.rand(32, BATCH, 3, SIDE, SIDE)
    best = copy.deepcopy(model.state_dict())
    number, lowest = 0, math.inf
    while steps.remain:
        batch = images[number % len(images)]
        pixels, mean, log_variance = model(batch)
        bound = loss(pixels, batch, mean, log_variance)
        optimizer.zero_grad(set_to_none="zero_fill" not in faults)
        bound.backward()
        optimizer.step()
        if "copied_state" in faults:  # "in case the run breaks"
            best = copy.deepcopy(model.state_dict())
        number, lowest = number + 1, min(lowest, bound.item())
        steps.step()
    model.load_state_dict(best)
