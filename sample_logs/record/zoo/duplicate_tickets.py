"""Siamese head on a frozen BERT: are two support tickets duplicates, and who handles the pair?"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertModel

FAULTS = {
    "frozen_encoder_rerun": "a frozen encoder run on the same tickets every step",
    "penalty_loop": "weight decay as a sum of squares over all parameters",
    "loss_history": "losses kept with their graphs and averaged from the first one every step",
}


TASKS = ("duplicate", "urgent", "merge", "escalate")


class PairHead(nn.Module):
    """Two towers with shared weights and one output per task."""

    def __init__(self, width, hidden=512):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.mix = nn.Sequential(nn.Linear(3 * hidden, hidden), nn.GELU())
        self.tasks = nn.ModuleDict({t: nn.Linear(hidden, 1) for t in TASKS})

    def forward(self, a, b):
        a, b = self.tower(a), self.tower(b)
        h = self.mix(torch.cat([a, b, (a - b).abs()], dim=1))
        return {task: layer(h).squeeze(1) for task, layer in self.tasks.items()}


class SiameseTrainer:
    def __init__(self, faults, n_tickets=64, pairs_per_step=32):
        self.rerun = "frozen_encoder_rerun" in faults
        self.penalty = "penalty_loop" in faults
        self.keep_losses = "loss_history" in faults
        torch.manual_seed(1)
        config = BertConfig(
            vocab_size=500,
            hidden_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=192,
            max_position_embeddings=64,
        )
        self.encoder = BertModel(config).eval().requires_grad_(False)
        self.tickets = torch.randint(0, 500, (n_tickets, 16))
        self.topic = self.tickets[:, 0] % 5
        self.pairs_per_step = pairs_per_step
        self.head = PairHead(config.hidden_size)
        self.weight_decay = 1e-4
        self.optimizer = torch.optim.SGD(
            self.head.parameters(),
            lr=0.05,
            weight_decay=0.0 if self.penalty else self.weight_decay,
            foreach=True,
        )
        self.features = None if self.rerun else self.encode()
        self.history = {task: [] for task in self.head.tasks}
        self.totals = dict.fromkeys(self.head.tasks, 0.0)

    @torch.no_grad()
    def encode(self):
        hidden = self.encoder(self.tickets).last_hidden_state  # fault: frozen_encoder_rerun
        return hidden.mean(dim=1)

    def sample_pairs(self):
        i, j = torch.randint(0, len(self.tickets), (2, self.pairs_per_step))
        return (
            i,
            j,
            {
                "duplicate": (self.topic[i] == self.topic[j]).float(),
                "urgent": ((self.topic[i] + self.topic[j]) > 4).float(),
                "merge": ((self.topic[i] - self.topic[j]).abs() < 2).float(),
                "escalate": (self.topic[i] * self.topic[j] > 6).float(),
            },
        )

    def average(self, task, loss):
        """Return the mean loss of a task so far, for the log."""
        if self.keep_losses:
            self.history[task].append(loss)  # fault: loss_history
            return sum(self.history[task]) / len(self.history[task])  # fault: loss_history
        self.history[task].append(None)
        self.totals[task] += loss.detach()
        return self.totals[task] / len(self.history[task])

    def step(self):
        i, j, targets = self.sample_pairs()
        features = self.encode() if self.rerun else self.features  # fault: frozen_encoder_rerun
        outputs = self.head(features[i], features[j])
        losses = {
            task: F.binary_cross_entropy_with_logits(outputs[task], target)
            for task, target in targets.items()
        }
        loss = sum(losses.values())
        if self.penalty:
            for p in self.head.parameters():
                loss = loss + 0.5 * self.weight_decay * p.pow(2).sum()  # fault: penalty_loop
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {task: self.average(task, value) for task, value in losses.items()}

    def fit(self, steps, warmup=10):
        for _ in range(warmup):
            self.step()
        start = time.perf_counter()
        for n in range(steps):
            means = self.step()
            if n % 100 == 0:
                print(n, {task: round(float(mean), 4) for task, mean in means.items()})
        seconds = time.perf_counter() - start
        print("mean losses", {task: round(float(mean), 4) for task, mean in means.items()})
        print(f"steps={steps} seconds={seconds:.3f} samples={steps * self.pairs_per_step}")


if __name__ == "__main__":
    on = set(sys.argv[1:])
    SiameseTrainer(on).fit(steps=300)
