"""Which dialect does the speaker have: log-mel frames, dilated convolutions, statistics pooling."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "padding": "clips padded to a fixed length far beyond the longest of the batch",
    "filterbank": "a mel filterbank built anew for each clip",
    "anomaly": "anomaly detection of autograd left on",
    "float64": "waveforms and spectrograms in double precision",
}
on = set(sys.argv[1:])

SAMPLE_RATE, N_FFT, HOP, N_MELS = 16000, 400, 160, 40
MAX_FRAMES = 200
BATCH = 16
WARMUP, STEPS = 5, 60
DIALECTS = ["north", "south", "east", "west", "coast", "islands"]


def hz_to_mel(hz):
    return 2595.0 * np.log10(1.0 + hz / 700.0)


def mel_filterbank(sample_rate, n_fft, n_mels):
    """Triangular filters, (n_mels, n_fft // 2 + 1)."""
    mels = np.linspace(hz_to_mel(20.0), hz_to_mel(sample_rate / 2), n_mels + 2)
    edges = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    freqs = np.linspace(0, sample_rate / 2, n_fft // 2 + 1)
    bank = np.zeros((n_mels, len(freqs)), dtype=np.float32)
    for m in range(n_mels):
        lower = (freqs - edges[m]) / (edges[m + 1] - edges[m])
        upper = (edges[m + 2] - freqs) / (edges[m + 2] - edges[m + 1])
        bank[m] = np.maximum(0, np.minimum(lower, upper))
        bank[m] *= 2.0 / (edges[m + 2] - edges[m])
    return torch.from_numpy(bank)


class LogMel:
    def __init__(self):
        self.bank = mel_filterbank(SAMPLE_RATE, N_FFT, N_MELS)
        self.window = torch.hann_window(N_FFT)

    def __call__(self, wave):
        bank = self.bank
        if "filterbank" in on:
            bank = mel_filterbank(SAMPLE_RATE, N_FFT, N_MELS)  # fault: filterbank
        window = self.window.to(wave.dtype)
        spec = torch.stft(wave, N_FFT, HOP, window=window, return_complex=True)  # fault: float64
        power = torch.view_as_real(spec).square().sum(-1)  # fault: float64
        mel = bank.to(wave.dtype) @ power  # fault: float64
        return mel.clamp(min=1e-10).log().float()  # fault: float64


class Dialects(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        kind = np.float64 if "float64" in on else np.float32
        self.waves, self.labels = [], rng.integers(0, len(DIALECTS), n)
        for label in self.labels:
            t = np.arange(rng.integers(15000, 17000)) / SAMPLE_RATE
            pitch = rng.uniform(90, 220) * (1 + 0.02 * np.sin(2 * np.pi * (2 + label) * t))
            wave = sum(np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 5))
            self.waves.append(torch.from_numpy(wave.astype(kind)))
        self.noise = torch.from_numpy(rng.normal(0, 0.1, 10 * SAMPLE_RATE).astype(kind))
        self.log_mel = LogMel()

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        wave = self.waves[i]
        start = np.random.randint(len(self.noise) - len(wave))
        wave = wave + np.random.uniform(0.1, 1.0) * self.noise[start : start + len(wave)]
        return self.log_mel(wave), int(self.labels[i])


def collate(batch):
    lengths = torch.tensor([mel.shape[1] for mel, _ in batch])
    longest = MAX_FRAMES if "padding" in on else int(lengths.max())
    mels = torch.zeros(len(batch), N_MELS, longest)
    for row, (mel, _) in zip(mels, batch, strict=True):
        row[:, : mel.shape[1]] = (mel - mel.mean(1, keepdim=True)) / 4
    return mels, lengths, torch.tensor([label for _, label in batch])


class Frames(nn.Module):
    def __init__(self, cin, cout, kernel, dilation):
        super().__init__()
        span = dilation * (kernel // 2)
        self.conv = nn.Conv1d(cin, cout, kernel, dilation=dilation, padding=span)

    def forward(self, x, mask):
        return F.relu(self.conv(x)) * mask


class XVector(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.frames = nn.ModuleList(
            Frames(*sizes)
            for sizes in [(N_MELS, width, 5, 1), (width, width, 3, 2), (width, width, 3, 3)]
        )
        self.wide = Frames(width, 2 * width, 1, 1)
        self.head = nn.Sequential(
            nn.Linear(4 * width, width), nn.ReLU(), nn.Linear(width, len(DIALECTS))
        )

    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[2]) < lengths[:, None]).unsqueeze(1).float()
        for layer in [*self.frames, self.wide]:
            x = layer(x, mask)  # fault: padding
        n = lengths[:, None]
        mean = x.sum(2) / n
        var = (((x - mean[:, :, None]) * mask) ** 2).sum(2) / n  # fault: padding
        return self.head(torch.cat([mean, (var + 1e-5).sqrt()], 1))


torch.manual_seed(0)
np.random.seed(0)
torch.autograd.set_detect_anomaly("anomaly" in on)
loader = DataLoader(Dialects(512), BATCH, shuffle=True, collate_fn=collate, drop_last=True)
model = XVector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

step, started = 0, 0.0
while step < WARMUP + STEPS:
    for mels, lengths, labels in loader:
        if step == WARMUP:
            started = time.time()
        loss = F.cross_entropy(model(mels, lengths), labels)  # fault: anomaly
        optimizer.zero_grad()
        loss.backward()  # fault: anomaly
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}")
        if step == WARMUP + STEPS:
            break

seconds = time.time() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
