"""One-dimensional convolutions learn commands from waveforms, which are augmented in the step."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import io
import math
import wave
from collections.abc import Set

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "numpy_augmentation": Fault("numpy-in-step"),
    "tiny_batch": Fault("tiny-batch-size"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
}
PAIRS = (
    ("no_workers",),
    ("numpy_augmentation",),
    ("tiny_batch",),
    ("tiny_batch", "one_by_one"),
    ("no_workers", "numpy_augmentation"),
)
SEED = 20_305
BATCH = 16
TINY_BATCH = 2
CLIPS = 64_000
RECORDED_RATE, RATE = 22_050, 8_000
SAMPLES = RATE
MOST_SHIFT = 800
MASKED = 1_000
LOUDEST, LEVELS = 4.0, 255
CHANNELS = (1, 24, 24, 32, 48, 64)
KERNELS = ((20, 8), (8, 4), (4, 2), (4, 2), (4, 2))
"""Length and stride of each convolution."""
COMMANDS = 35
Samples = npt.NDArray[np.float32]


def wave_file(source: np.random.Generator) -> bytes:
    """Returns the bytes of a file with a second of a made-up voice."""
    times = np.arange(RECORDED_RATE) / RECORDED_RATE
    tones = sum(np.sin(2 * np.pi * source.uniform(80, 3_000) * times) for _ in range(4))
    samples = 4_000 * tones + source.normal(0, 500, RECORDED_RATE)
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RECORDED_RATE)
        file.writeframes(samples.astype(np.int16).tobytes())
    return stream.getvalue()


class Commands(Dataset[tuple[Samples, int]]):
    """Recorded commands; each access decodes one, resamples it and emphasizes high tones."""

    def __init__(self) -> None:
        source = np.random.default_rng(SEED)
        self._files = [wave_file(source) for _ in range(128)]

    def __len__(self) -> int:
        return CLIPS

    @override
    def __getitem__(self, index: int) -> tuple[Samples, int]:
        with wave.open(io.BytesIO(self._files[index % len(self._files)])) as file:
            frames = file.readframes(file.getnframes())
        recorded = np.frombuffer(frames, np.int16) / 32_768
        times = np.arange(SAMPLES) * (RECORDED_RATE / RATE)
        samples = np.interp(times, np.arange(len(recorded)), recorded)
        emphasized = np.append(samples[0], samples[1:] - 0.97 * samples[:-1])
        return (emphasized / emphasized.std()).astype(np.float32), index % COMMANDS


def augmented_in_numpy(waves: Tensor, source: np.random.Generator) -> Tensor:
    """Returns shifted waves with noise and silence as by telephone, one wave after the other."""
    result = []
    for samples in waves.numpy():
        shifted = np.roll(samples, source.integers(-MOST_SHIFT, MOST_SHIFT))
        noise = source.normal(size=len(shifted)) * np.sqrt(np.mean(shifted**2))
        noisy = np.clip((shifted + source.uniform(0.0, 0.3) * noise) / LOUDEST, -1, 1)
        level = np.sign(noisy) * np.log1p(LEVELS * np.abs(noisy)) / np.log1p(LEVELS)
        coded = np.round(level * LEVELS / 2) / LEVELS * 2
        sent = np.sign(coded) * np.expm1(np.abs(coded) * np.log1p(LEVELS)) / LEVELS * LOUDEST
        begin = source.integers(0, len(sent) - MASKED)
        sent[begin : begin + MASKED] = 0
        result.append(sent)
    return torch.from_numpy(np.stack(result).astype(np.float32))


def augmented(waves: Tensor) -> Tensor:
    """Returns shifted waves with noise and silence as by telephone, all at once."""
    count, length = waves.shape
    shifted = torch.roll(waves, int(torch.randint(-MOST_SHIFT, MOST_SHIFT, ())), dims=1)
    noise = torch.randn_like(shifted) * shifted.square().mean(dim=1, keepdim=True).sqrt()
    noisy = ((shifted + 0.3 * torch.rand(count, 1) * noise) / LOUDEST).clamp(-1, 1)
    level = noisy.sign() * (LEVELS * noisy.abs()).log1p() / math.log1p(LEVELS)
    coded = (level * (LEVELS / 2)).round() * (2 / LEVELS)
    sent = coded.sign() * (coded.abs() * math.log1p(LEVELS)).expm1() * (LOUDEST / LEVELS)
    begin = torch.randint(length - MASKED, (count, 1))
    times = torch.arange(length)
    return sent.masked_fill((times >= begin) & (times < begin + MASKED), 0)


class SpeechEncoder(nn.Module):
    """Convolutions along the wave, the mean over time, and scores of the commands."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for index, (kernel, stride) in enumerate(KERNELS):
            before, after = CHANNELS[index : index + 2]
            convolution = nn.Conv1d(before, after, kernel, stride, bias=False)
            layers += [convolution, nn.GroupNorm(4, after), nn.GELU()]
        self.convolutions = nn.Sequential(*layers)
        self.commands = nn.Sequential(
            nn.Linear(CHANNELS[-1], 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, COMMANDS)
        )

    @override
    def forward(self, waves: Tensor) -> Tensor:
        scores: Tensor = self.commands(self.convolutions(waves.unsqueeze(1)).mean(dim=2))
        return scores


def samples(faults: Set[str]) -> int:
    """Returns the waves of a step."""
    return TINY_BATCH if "tiny_batch" in faults else BATCH


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    source = np.random.default_rng(SEED)
    workers = 0 if "no_workers" in faults else 1
    loader = DataLoader(
        Commands(),
        batch_size=samples(faults),
        shuffle=True,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    model = SpeechEncoder()
    fused = None if "one_by_one" in faults else True
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=fused)
    batches = endless(loader)
    while steps.remain:
        waves, commands = next(batches)
        with record_function("augment"):
            if "numpy_augmentation" in faults:
                waves = augmented_in_numpy(waves, source)
            else:
                waves = augmented(waves)
        optimizer.zero_grad()
        functional.cross_entropy(model(waves), commands).backward()
        optimizer.step()
        steps.step()
