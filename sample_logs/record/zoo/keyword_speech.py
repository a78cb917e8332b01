"""Recognizes the digits of synthetic utterances with a convolution, a GRU and CTC."""

import sys
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

FAULTS = {
    "unsorted_lengths": "batches that mix short and long utterances, so that much is padding",
    "repeated_features": "spectrograms of the same clips computed again in every step",
    "gru_cell_loop": "a recurrent layer computed by a loop over GRUCell",
}
on = set(sys.argv[1:])

RATE, N_FFT, HOP, MELS = 8000, 512, 32, 40
TONES = [300 + 170 * digit for digit in range(10)]


class Utterances(Dataset):
    """Tones of 60 ms, one for each digit."""

    def __init__(self, count, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.clips, self.digits = [], []
        for _ in range(count):
            skew = torch.rand((), generator=generator) ** 4
            digits = torch.randint(10, (3 + int(skew * 20),), generator=generator)
            t = torch.arange(int(0.06 * RATE)) / RATE
            wave = torch.cat([torch.sin(6.2832 * TONES[d] * t) for d in digits.tolist()])
            self.clips.append(wave + 0.1 * torch.randn(len(wave), generator=generator))
            self.digits.append(digits + 1)  # 0 is the blank
        self.window = torch.hann_window(N_FFT)
        self.filters = torch.rand(MELS, N_FFT // 2 + 1, generator=generator).pow(8)
        self.features = {}

    def __len__(self):
        return len(self.clips)

    def spectrogram(self, index):
        clip, size = self.clips[index], (N_FFT, HOP, N_FFT)
        s = torch.stft(clip, *size, self.window, return_complex=True)  # fault: repeated_features
        mel = self.filters @ s.abs().pow(2)  # fault: repeated_features
        return mel.add(1e-6).log().T

    def __getitem__(self, index):
        if "repeated_features" in on:
            return self.spectrogram(index), self.digits[index]
        if index not in self.features:
            self.features[index] = self.spectrogram(index)
        return self.features[index], self.digits[index]


class LengthBatches(Sampler):
    """Batches of neighbours in length, in random order."""

    def __init__(self, dataset, size):
        order = sorted(range(len(dataset)), key=lambda i: len(dataset.clips[i]))
        self.batches = [order[i : i + size] for i in range(0, len(order), size)]

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for i in torch.randperm(len(self.batches)).tolist():
            yield self.batches[i]


def collate(items):
    features, digits = zip(*items)
    lengths = torch.tensor([len(f) for f in features])
    return pad_sequence(features, batch_first=True), lengths, digits


class Recognizer(nn.Module):
    def __init__(self, channels=32, hidden=48):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(MELS, channels, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        if "gru_cell_loop" in on:
            self.cell = nn.GRUCell(channels, hidden)
        else:
            self.gru = nn.GRU(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 11)

    def forward(self, x):
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)  # fault: unsorted_lengths
        if "gru_cell_loop" in on:
            state, states = x.new_zeros(len(x), self.cell.hidden_size), []
            for t in range(x.shape[1]):
                state = self.cell(x[:, t], state)  # fault: gru_cell_loop
                states.append(state)
            x = torch.stack(states, dim=1)
        else:
            x, _ = self.gru(x)  # fault: unsorted_lengths
        return self.head(x).log_softmax(-1)


class Trainer:
    def __init__(self, model, dataset, batch_size):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.criterion = nn.CTCLoss(zero_infinity=True)
        self.samples = 0
        if "unsorted_lengths" in on:
            self.loader = DataLoader(dataset, batch_size, shuffle=True, collate_fn=collate)
        else:
            sampler = LengthBatches(dataset, batch_size)
            self.loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)

    def train_step(self, features, lengths, digits):
        log_probs = self.model(features)
        frames = (lengths + 3) // 4
        targets = torch.cat(digits)
        target_lengths = torch.tensor([len(d) for d in digits])
        loss = self.criterion(log_probs.transpose(0, 1), targets, frames, target_lengths)
        self.optimizer.zero_grad()
        loss.backward()  # fault: unsorted_lengths
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.samples += len(digits)
        return loss.item()

    def fit(self, epochs):
        losses = []
        for _ in range(epochs):
            losses += [self.train_step(*batch) for batch in self.loader]
        return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer(Recognizer(), Utterances(160), batch_size=8)
    trainer.fit(1)
    trainer.samples = 0
    start = time.perf_counter()
    losses = trainer.fit(8)
    seconds = time.perf_counter() - start
    print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
    print(f"steps={len(losses)} seconds={seconds:.3f} samples={trainer.samples}")
