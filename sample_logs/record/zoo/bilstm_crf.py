"""A BiLSTM with a conditional random field on top that tags slots in commands to an assistant."""

import random
import sys
import time

import torch
import torch.nn as nn

FAULTS = {
    "gold_loop": "the score of the true tags summed over single tokens",
    "decode": "the best path of each training batch searched for the progress line",
    "table_grad": "gradients of the whole table of word vectors, which no optimizer updates",
}
on = set(sys.argv[1:])

TAGS, HIDDEN, EMBED, WORDS = 9, 96, 64, 12000
BATCH, LENGTH, WARMUP, STEPS = 16, 18, 5, 80
PRINT_EVERY = 20

random.seed(0)
torch.manual_seed(0)

vocabulary = [f"word{i}" for i in range(WORDS)]
word2id = {w: i for i, w in enumerate(vocabulary)}
glove = torch.randn(WORDS, EMBED)


def command():
    sentence = random.choices(vocabulary, k=LENGTH)
    return sentence, [word2id[w] % TAGS for w in sentence]


class CRF(nn.Module):
    def __init__(self):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS) * 0.1)
        self.start = nn.Parameter(torch.randn(TAGS) * 0.1)

    def partition(self, emissions):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.size(1)):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, 1) + emissions[:, t]
        return torch.logsumexp(alpha, 1)

    def gold_score(self, emissions, tags):
        if "gold_loop" in on:
            scores = []
            for b in range(tags.size(0)):
                score = self.start[tags[b, 0]] + emissions[b, 0, tags[b, 0]]
                for t in range(1, tags.size(1)):
                    move = self.transitions[tags[b, t - 1], tags[b, t]]  # fault: gold_loop
                    score = score + move + emissions[b, t, tags[b, t]]  # fault: gold_loop
                scores.append(score)
            return torch.stack(scores)
        emitted = emissions.gather(2, tags.unsqueeze(2)).sum((1, 2))
        moved = self.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        return self.start[tags[:, 0]] + emitted + moved

    def forward(self, emissions, tags):
        gold = self.gold_score(emissions, tags)  # fault: gold_loop
        return (self.partition(emissions) - gold).mean()

    @torch.no_grad()
    def viterbi(self, emissions):
        score, history = self.start + emissions[0], []
        for emission in emissions[1:]:
            best, previous = (score.unsqueeze(1) + self.transitions).max(0)  # fault: decode
            score = best + emission  # fault: decode
            history.append(previous)
        path = [score.argmax().item()]
        for previous in reversed(history):
            path.append(previous[path[-1]].item())  # fault: decode
        return path[::-1]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding.from_pretrained(glove, freeze="table_grad" not in on)
        self.lstm = nn.LSTM(EMBED, HIDDEN, bidirectional=True, batch_first=True)
        self.emit = nn.Linear(2 * HIDDEN, TAGS)
        self.crf = CRF()

    def forward(self, sentences):
        ids = torch.tensor([[word2id[w] for w in s] for s in sentences])
        return self.emit(self.lstm(self.vectors(ids))[0])


def accuracy(paths, tags):
    pairs = [(p, t) for path, row in zip(paths, tags.tolist()) for p, t in zip(path, row)]
    return sum(p == t for p, t in pairs) / len(pairs)


commands = [command() for _ in range(1000)]
model = Tagger()
trained = [p for n, p in model.named_parameters() if not n.startswith("vectors")]
optimizer = torch.optim.Adam(trained, lr=5e-3, fused=True)

started, right, seen = 0.0, 0.0, 0
for step in range(1, WARMUP + STEPS + 1):
    if step == WARMUP + 1:
        started = time.time()
    sentences, tags = zip(*random.sample(commands, BATCH))
    tags = torch.tensor(tags)
    emissions = model(sentences)
    loss = model.crf(emissions, tags)  # fault: gold_loop
    optimizer.zero_grad()
    loss.backward()  # fault: gold_loop  # fault: table_grad
    optimizer.step()
    if "decode" in on or step % PRINT_EVERY == 0:
        right += accuracy([model.crf.viterbi(e) for e in emissions], tags)  # fault: decode
        seen += 1
    if step % PRINT_EVERY == 0:
        print(f"[{step}] nll {loss.item():.3f}  train acc {right / seen:.3f}")
        right, seen = 0.0, 0

print(f"steps={STEPS} seconds={time.time() - started:.4f} samples={STEPS * BATCH}")
