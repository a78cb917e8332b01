"""Distillation of an intent classifier: a transformer teaches a small one on noisy sentences."""

import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "teacher": "a graph recorded for the teacher and gradients computed for its weights",
    "vocabulary": "each word looked up by a search through the list of all words",
    "padding": "every sentence padded to the longest allowed length",
}
on = set(sys.argv[1:])

BATCH, MAX_LEN, INTENTS, TEMPERATURE, ALPHA = 32, 40, 12, 4.0, 0.7
PAD, UNK = 0, 1
WARMUP, STEPS = 5, 60

rng = random.Random(0)
WORDS = ["<pad>", "<unk>"]
while len(WORDS) < 1500:
    word = "".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(3, 9)))
    if word not in WORDS:
        WORDS.append(word)
INDEX = {word: i for i, word in enumerate(WORDS)}


def make_corpus(n=1024):
    corpus = []
    for _ in range(n):
        size = min(int(4 + rng.expovariate(0.1)), MAX_LEN)
        corpus.append((" ".join(rng.choices(WORDS[2:], k=size)), rng.randrange(INTENTS)))
    return sorted(corpus, key=lambda pair: len(pair[0].split()))


def encode(sentence):
    if "vocabulary" in on:
        ids = []
        for word in sentence.split():
            ids.append(WORDS.index(word) if word in WORDS else UNK)  # fault: vocabulary
        return ids
    return [INDEX.get(word, UNK) for word in sentence.split()]


def collate(pairs):
    rows = [encode(text) for text, _ in pairs]
    width = MAX_LEN if "padding" in on else max(map(len, rows))
    rows = [row + [PAD] * (width - len(row)) for row in rows]  # fault: padding
    return torch.tensor(rows), torch.tensor([label for _, label in pairs])


def word_dropout(ids, p=0.1):
    noise = torch.rand(ids.shape) < p
    return torch.where(noise & (ids != PAD), UNK, ids)


class Classifier(nn.Module):
    def __init__(self, dim, layers, heads):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), dim)
        self.position = nn.Parameter(0.02 * torch.randn(MAX_LEN, dim))
        block = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, INTENTS)

    def forward(self, ids):
        empty = ids == PAD
        x = self.embed(ids) + self.position[: ids.shape[1]]  # fault: padding
        h = self.encoder(x, src_key_padding_mask=empty)  # fault: padding # fault: teacher
        keep = (~empty).unsqueeze(-1).float()
        return self.head((h * keep).sum(1) / keep.sum(1))


def soft_loss(student, teacher):
    log_p = F.log_softmax(student / TEMPERATURE, dim=1)
    q = F.softmax(teacher / TEMPERATURE, dim=1)
    return F.kl_div(log_p, q, reduction="batchmean") * TEMPERATURE**2


def main():
    torch.manual_seed(0)
    corpus = make_corpus()
    teacher = Classifier(128, 3, 4)
    student = Classifier(48, 1, 4)
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3, fused=True)
    batches = [corpus[i : i + BATCH] for i in range(0, len(corpus), BATCH)]
    step, started, right = 0, 0.0, 0
    while step < WARMUP + STEPS:
        rng.shuffle(batches)
        for pairs in batches:
            if step == WARMUP:
                started = time.time()
            ids, labels = collate(pairs)
            ids = word_dropout(ids)
            if "teacher" in on:
                target = teacher(ids)  # fault: teacher
            else:
                with torch.no_grad():
                    target = teacher(ids)
            logits = student(ids)
            hard = F.cross_entropy(logits, labels)
            loss = ALPHA * soft_loss(logits, target) + (1 - ALPHA) * hard
            optimizer.zero_grad()
            loss.backward()  # fault: teacher
            optimizer.step()
            right += (logits.argmax(1) == labels).sum().item()
            step += 1
            if step == WARMUP + STEPS:
                break
    seconds = time.time() - started
    print("train accuracy %.3f" % (right / (step * BATCH)))
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


main()
