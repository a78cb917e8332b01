"""German to English with a GRU, attention and teacher forcing, after the well-known tutorial."""

import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

FAULTS = {
    "word_list": "each word looked up by a search through the list of words",
    "one_hot": "targets as one-hot rows over the whole vocabulary",
    "cells": "a decoder that goes word by word though all its inputs are known",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 16, 5, 60
WORDS, LENGTH, HIDDEN = 2000, 16, 96
PAD, SOS, EOS = 0, 1, 2

random.seed(0)
torch.manual_seed(0)


class Lang:
    def __init__(self, prefix):
        self.words = ["<pad>", "<sos>", "<eos>"] + [f"{prefix}{i:04d}" for i in range(WORDS - 3)]
        self.word2index = {w: i for i, w in enumerate(self.words)}

    def indexes(self, sentence):
        if "word_list" in on:
            return [self.words.index(w) for w in sentence.split(" ")]  # fault: word_list
        return [self.word2index[w] for w in sentence.split(" ")]


german, english = Lang("g"), Lang("e")


def make_pair():
    picks = [3 + int((WORDS - 3) * random.random() ** 2) for _ in range(LENGTH)]
    source = " ".join(german.words[i] for i in picks)
    return source, " ".join(english.words[i] for i in reversed(picks[: LENGTH - 1]))


pairs = [make_pair() for _ in range(2000)]


def get_batch():
    chosen = random.sample(pairs, BATCH)
    source = [german.indexes(s) for s, _ in chosen]  # fault: word_list
    target = [english.indexes(t) + [EOS] for _, t in chosen]  # fault: word_list
    return torch.tensor(source), torch.tensor(target)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))


class AttnDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.combine = nn.Linear(2 * HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, WORDS)

    def attend(self, states, memory):
        weights = (states @ memory.transpose(1, 2)).softmax(-1)  # fault: cells
        context = weights @ memory  # fault: cells
        mixed = torch.tanh(self.combine(torch.cat([states, context], -1)))  # fault: cells
        return self.out(mixed)  # fault: cells

    def forward(self, target, hidden, memory):
        sos = torch.full((len(target), 1), SOS)
        inputs = torch.cat([sos, target[:, :-1]], 1)
        if "cells" in on:
            outputs = []
            for t in range(inputs.size(1)):
                embedded = self.embedding(inputs[:, t : t + 1])  # fault: cells
                state, hidden = self.gru(embedded, hidden)  # fault: cells
                outputs.append(self.attend(state, memory))  # fault: cells
            return torch.cat(outputs, 1)  # fault: cells
        states, _ = self.gru(self.embedding(inputs), hidden)
        return self.attend(states, memory)


def criterion(logits, target):
    if "one_hot" in on:
        onehot = F.one_hot(target, WORDS).float()  # fault: one_hot
        log_probs = F.log_softmax(logits, -1)
        return -(onehot * log_probs).sum(-1).mean()  # fault: one_hot
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


encoder, decoder = Encoder(), AttnDecoder()
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = optim.SGD(params, lr=0.5)

total, start = 0.0, 0.0
for step in range(1, WARMUP + STEPS + 1):
    if step == WARMUP + 1:
        start = time.time()
    source, target = get_batch()  # fault: word_list
    optimizer.zero_grad()
    memory, hidden = encoder(source)
    logits = decoder(target, hidden, memory)  # fault: cells
    loss = criterion(logits, target)  # fault: one_hot
    loss.backward()  # fault: cells  # fault: one_hot
    optimizer.step()
    total += loss.item()
    if step % 20 == 0:
        print(f"{time.time() - start:5.1f}s ({step}) loss {total / 20:.4f}")
        total = 0.0

print(f"steps={STEPS} seconds={time.time() - start:.4f} samples={STEPS * BATCH}")
