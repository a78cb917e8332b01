"""Recognition of spoken digit strings: log-mel features, convolution and GRU, CTC loss."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "padding": "utterances padded to the longest of the corpus instead of the batch",
    "features": "log-mel features computed anew for each utterance in every epoch",
    "decode": "greedy decoding frame by frame in Python for the error rate of every step",
}
on = set(sys.argv[1:])

RATE, N_FFT, HOP, MELS, BLANK = 8000, 256, 80, 40, 10
BATCH, WARMUP, STEPS = 8, 5, 60


def mel_filters():
    def mel(f):
        return 2595 * np.log10(1 + f / 700)

    edges = 700 * (10 ** (np.linspace(mel(50), mel(RATE / 2), MELS + 2) / 2595) - 1)
    freqs = np.fft.rfftfreq(N_FFT, 1 / RATE)
    bank = np.zeros((MELS, len(freqs)), dtype=np.float32)
    for m in range(MELS):
        left, mid, right = edges[m : m + 3]
        up, down = (freqs - left) / (mid - left), (right - freqs) / (right - mid)
        bank[m] = np.maximum(0, np.minimum(up, down))
    return bank


FILTERS = mel_filters()
WINDOW = np.hanning(N_FFT).astype(np.float32)


def log_mel(wave):
    frames = np.lib.stride_tricks.sliding_window_view(wave, N_FFT)[::HOP]  # fault: features
    power = np.abs(np.fft.rfft(frames * WINDOW)) ** 2  # fault: features
    feats = np.log(power @ FILTERS.T + 1e-6)  # fault: features
    feats = (feats - feats.mean(0)) / (feats.std(0) + 1e-5)  # fault: features
    return torch.from_numpy(feats).float()


class Utterances(Dataset):
    def __init__(self, n=256):
        rng = np.random.default_rng(0)
        seconds = np.minimum(0.5 + rng.exponential(0.35, n), 2.0)
        order = np.argsort(seconds)
        self.waves, self.texts = [], []
        for s in seconds[order]:
            wave = rng.standard_normal(int(s * RATE)).astype(np.float32)
            self.waves.append(wave)
            self.texts.append(torch.from_numpy(rng.integers(0, 10, int(s * 5))))
        self.longest = 1 + (max(map(len, self.waves)) - N_FFT) // HOP
        self.feats = None if "features" in on else [log_mel(w) for w in self.waves]

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        if self.feats is None:
            return log_mel(self.waves[i]), self.texts[i]  # fault: features
        return self.feats[i], self.texts[i]

    def collate(self, items):
        feats, texts = zip(*items, strict=True)
        lengths = torch.tensor([len(f) for f in feats])
        sizes = torch.tensor([len(t) for t in texts])
        x = pad_sequence(feats, batch_first=True)
        if "padding" in on:
            x = nn.functional.pad(x, (0, 0, 0, self.longest - x.shape[1]))  # fault: padding
        return x, lengths, torch.cat(texts), sizes


class Acoustic(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.conv = nn.Conv1d(MELS, hidden, 5, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 11)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)  # fault: padding
        h, _ = self.rnn(h)  # fault: padding
        return self.out(h).log_softmax(-1)  # fault: padding


def greedy(log_probs, lengths):
    if "decode" in on:
        best = []
        for b in range(len(lengths)):
            best.append([])
            for t in range(int(lengths[b])):
                best[b].append(log_probs[b, t].argmax().item())  # fault: decode
    else:
        rows = log_probs.argmax(-1).tolist()
        best = [row[:n] for row, n in zip(rows, lengths.tolist(), strict=True)]
    return [[c for c, p in zip(r, [None, *r]) if c not in (p, BLANK)] for r in best]  # noqa: B905


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def main():
    torch.manual_seed(0)
    data = Utterances()
    batches = [list(range(i, i + BATCH)) for i in range(0, len(data), BATCH)]
    order = [batches[i] for i in torch.randperm(len(batches)).tolist()]
    loader = DataLoader(data, batch_sampler=order, collate_fn=data.collate)
    model, ctc = Acoustic(), nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    step, started, wrong, total = 0, 0.0, 0, 0
    while step < WARMUP + STEPS:
        for x, lengths, targets, sizes in loader:
            if step == WARMUP:
                started = time.perf_counter()
            log_probs = model(x)  # fault: padding
            loss = ctc(log_probs.transpose(0, 1), targets, lengths, sizes)
            optimizer.zero_grad()
            loss.backward()  # fault: padding
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            guesses = greedy(log_probs.detach(), lengths)  # fault: decode
            for guess, text in zip(guesses, targets.split(sizes.tolist()), strict=True):
                wrong += edit_distance(guess, text.tolist())
                total += len(text)
            step += 1
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    print(f"digit error rate {wrong / total:.3f}")
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


main()
