"""Character-level LSTM, truncated backpropagation through time.

Text is generated from a small grammar, so that there is something to learn.
"""

import random
import sys
import time

import torch
from torch import nn

FAULTS = {
    "cell_loop": "an LSTMCell called for each character from Python instead of nn.LSTM",
    "char_losses": "a loss computed for each character and summed in Python",
    "live_graphs": "losses appended to a list with their graphs, which retain_graph keeps alive",
}
on = set(sys.argv[1:])

# hyperparameters
hidden_size = 64
batch_size = 32
seq_length = 64
learning_rate = 2e-3
warmup_iters = 5
max_iters = 80

random.seed(1337)
torch.manual_seed(1337)

SUBJECTS = "the king|my lord|a fool|good night|sweet prince|the crown".split("|")
VERBS = "doth speak of|hath lost|shall see|loves|fears|must away with".split("|")
ENDS = [".\n", "!\n", ";\n", ", and "]


def sentence():
    return " ".join(map(random.choice, (SUBJECTS, VERBS, SUBJECTS))) + random.choice(ENDS)


data = "".join(sentence() for _ in range(9000))
chars = sorted(set(data))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = dict(enumerate(chars))
vocab_size = len(chars)
ids = torch.tensor([stoi[ch] for ch in data])
streams = ids[: len(ids) // batch_size * batch_size].view(batch_size, -1)
print(f"data has {len(data)} characters, {vocab_size} unique.")


class CharLSTM(nn.Module):
    """The whole sequence in one call."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden_size)
        self.lstm = nn.LSTM(hidden_size, hidden_size, batch_first=True)
        self.decoder = nn.Linear(hidden_size, vocab_size)

    def forward(self, x, state):
        out, state = self.lstm(self.embed(x), state)
        return self.decoder(out), state


class CharLSTMCell(nn.Module):
    """One character at a time, as the equations have it."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden_size)
        self.cell = nn.LSTMCell(hidden_size, hidden_size)
        self.decoder = nn.Linear(hidden_size, vocab_size)

    def forward(self, x, state):
        h, c = (s[0] for s in state)
        outputs = []
        for t in range(x.size(1)):
            h, c = self.cell(self.embed(x[:, t]), (h, c))  # fault: cell_loop
            outputs.append(self.decoder(h))  # fault: cell_loop
        return torch.stack(outputs, dim=1), (h[None], c[None])


model = CharLSTMCell() if "cell_loop" in on else CharLSTM()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)


def compute_loss(logits, targets):
    if "char_losses" not in on:
        return criterion(logits.reshape(-1, vocab_size), targets.reshape(-1))
    loss = 0
    for t in range(seq_length):
        loss += criterion(logits[:, t], targets[:, t])  # fault: char_losses
    return loss / seq_length


state = tuple(torch.zeros(1, batch_size, hidden_size) for _ in range(2))
losses = []
p = 0
for it in range(-warmup_iters, max_iters):
    if it == 0:
        t0 = time.perf_counter()
    if p + seq_length + 1 >= streams.size(1):
        p = 0
        state = tuple(torch.zeros_like(s) for s in state)
    inputs = streams[:, p : p + seq_length]
    targets = streams[:, p + 1 : p + seq_length + 1]
    p += seq_length

    logits, state = model(inputs, state)  # fault: cell_loop # fault: live_graphs
    loss = compute_loss(logits, targets)  # fault: char_losses
    optimizer.zero_grad()
    # "Trying to backward through the graph a second time" went away with retain_graph
    retain = "live_graphs" in on
    loss.backward(retain_graph=retain)  # fault: cell_loop # fault: char_losses # fault: live_graphs
    losses.append(loss if retain else loss.detach())
    state = tuple(s.detach() for s in state)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
elapsed = time.perf_counter() - t0

print(f"loss {torch.stack(losses[-20:]).mean():.3f}")
print(f"steps={max_iters} seconds={elapsed:.4f} samples={max_iters * batch_size}")
