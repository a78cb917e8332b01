"""Nightly job: a cross-encoder reorders the passages that a search found for each question."""

import csv
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification

FAULTS = {
    "unsorted": "short and long passages padded together in the order of the search",
    "document_counts": "passages with a word counted over the whole corpus for each question",
    "graph": "scores kept with the graph for gradients that nobody computes",
}
on = set(sys.argv[1:])

WARMUP, QUERIES, CANDIDATES, BATCH = 3, 60, 24, 8
WRITE_EVERY = 21
PAD, CLS, SEP = 0, 1, 2

random.seed(0)
torch.manual_seed(0)
words = [
    "".join(random.choices("abcdefghijklmnoprstuvw", k=random.randint(3, 9))) for _ in range(2000)
]
vocab = {w: i + 3 for i, w in enumerate(dict.fromkeys(words))}


def sentence(count):
    return " ".join(random.choice(words) for _ in range(count)).capitalize() + "."


passages = [sentence(random.choice([8, 12, 16, 20, 60])) for _ in range(2000)]
questions = [sentence(6) for _ in range(WARMUP + QUERIES)]
found = [random.sample(range(len(passages)), CANDIDATES) for _ in questions]


def tokenize(text):
    text = text.lower()
    text = re.sub(r"[^a-z0-9]+", " ", text).strip()
    return [vocab.get(w, SEP) for w in text.split(" ")]


class Bm25:
    """The part of the score that counts shared words."""

    def __init__(self, documents, k1=1.2, b=0.75):
        self.documents, self.k1, self.b = documents, k1, b
        self.counts = Counter(word for tokens in documents for word in set(tokens))
        self.average = sum(map(len, documents)) / len(documents)

    def document_count(self, word):
        if "document_counts" in on:
            return sum(word in tokens for tokens in self.documents)  # fault: document_counts
        return self.counts[word]

    def score(self, question, numbers):
        scores = torch.zeros(len(numbers))
        for word in question:
            count = self.document_count(word)  # fault: document_counts
            idf = math.log(1 + (len(self.documents) - count + 0.5) / (count + 0.5))
            for i, number in enumerate(numbers):
                tokens = self.documents[number]
                if word in tokens:
                    times = tokens.count(word)
                    norm = self.k1 * (1 - self.b + self.b * len(tokens) / self.average)
                    scores[i] += idf * times * (self.k1 + 1) / (times + norm)
        return scores


class Reranker:
    def __init__(self):
        config = BertConfig(
            vocab_size=len(vocab) + 3,
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=256,
            max_position_embeddings=128,
            num_labels=1,
        )
        self.model = BertForSequenceClassification(config).eval()
        self.tokens = [tokenize(p) for p in passages]
        self.bm25 = Bm25(self.tokens)

    def collate(self, pairs):
        width = max(map(len, pairs))
        ids = torch.tensor([p + [PAD] * (width - len(p)) for p in pairs])
        types = torch.zeros_like(ids)
        types[:, 8:] = 1
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "token_type_ids": types}

    def score(self, question, numbers):
        question = tokenize(question)
        pairs = [[CLS, *question, SEP, *self.tokens[n], SEP] for n in numbers]
        order = list(range(len(pairs)))
        if "unsorted" not in on:
            order.sort(key=lambda i: len(pairs[i]))
        scores = [None] * len(pairs)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            inputs = self.collate([pairs[i] for i in rows])
            with torch.set_grad_enabled("graph" in on):
                logits = self.model(**inputs).logits  # fault: unsorted  # fault: graph
            for i, value in zip(rows, logits.squeeze(1), strict=True):
                scores[i] = value
        lexical = self.bm25.score(question, numbers)  # fault: document_counts
        return torch.stack(scores) + 0.1 * lexical


def write(writer, ranked):
    for number, candidates, scores in ranked:
        for rank, i in enumerate(scores.argsort(descending=True).tolist()):
            writer.writerow([number, candidates[i], rank + 1, f"{scores[i].item():.4f}"])


reranker = Reranker()
folder = tempfile.TemporaryDirectory()
file = (Path(folder.name) / "ranks.tsv").open("w")
writer = csv.writer(file, delimiter="\t")
ranked = []
start = 0.0
for step, question in enumerate(questions):
    if step == WARMUP:
        start = time.perf_counter()
    scores = reranker.score(question, found[step])  # fault: unsorted  # fault: document_counts
    ranked.append((step, found[step], scores))
    if len(ranked) == WRITE_EVERY:
        write(writer, ranked)
        ranked.clear()
        print(f"{step + 1}/{len(questions)} questions")
write(writer, ranked)
seconds = time.perf_counter() - start
file.close()
folder.cleanup()

print(f"steps={QUERIES} seconds={seconds:.4f} samples={QUERIES * CANDIDATES}")
