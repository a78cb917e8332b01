"""Score a stack of articles against a list of topics with a frozen encoder, and write a table."""

import random
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import torch
from transformers import BertConfig, BertModel

FAULTS = {
    "width": "every batch padded to the longest length allowed rather than that of the batch",
    "topics": "the embeddings of the same topics computed again for every batch",
    "rows": "rows appended to a data frame one at a time",
    "stopwords": "stop words looked up in a list instead of a set",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 16, 4, 60
MAX_LENGTH, VOCABULARY = 96, 8192
PAD, CLS, SEP = 0, 1, 2


def word(rng):
    return "".join(rng.choices("abcdefghiklmnoprstuvwy", k=rng.randint(3, 9)))


def write_corpus(folder, n):
    rng = random.Random(5)
    stop = [word(rng) for _ in range(570)]
    words = [word(rng) for _ in range(5000)]
    (folder / "stopwords.txt").write_text("\n".join(stop))
    (folder / "topics.txt").write_text(
        "\n".join(
            " ".join(["this", "article", "is", "about", *rng.choices(words, k=3)]) for _ in range(8)
        )
    )
    articles = []
    for _ in range(n):
        content = rng.choices(words, k=rng.randint(43, 46))
        text = content + rng.choices(stop, k=80)
        rng.shuffle(text)
        articles.append(" ".join(text).capitalize() + ".")
    (folder / "articles.txt").write_text("\n".join(articles))


class Scorer:
    def __init__(self, folder):
        self.stopwords = (folder / "stopwords.txt").read_text().split()
        if "stopwords" not in on:
            self.stopwords = set(self.stopwords)
        self.topics = (folder / "topics.txt").read_text().splitlines()
        config = BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=128,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=512,
        )
        self.model = BertModel(config, add_pooling_layer=False).eval()
        self.ids = {}
        self.topic_vectors = None if "topics" in on else self.embed(self.topics)

    def tokenize(self, text):
        words = text.lower().rstrip(".").split()
        words = [w for w in words if w not in self.stopwords]  # fault: stopwords
        ids = [self.ids.setdefault(w, 3 + len(self.ids)) for w in words]
        return [CLS, *ids[: MAX_LENGTH - 2], SEP]

    @torch.inference_mode()
    def embed(self, texts):
        rows = [self.tokenize(text) for text in texts]
        width = MAX_LENGTH if "width" in on else max(map(len, rows))
        ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
        mask = (ids != PAD).long()
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state  # fault: width
        weights = mask.unsqueeze(-1).float()
        pooled = (hidden * weights).sum(1) / weights.sum(1)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def score(self, texts):
        topics = self.topic_vectors
        if topics is None:
            topics = self.embed(self.topics)  # fault: topics
        similarity = self.embed(texts) @ topics.T
        return torch.softmax(similarity / 0.05, dim=1).max(1)


class Table:
    columns = ("article", "topic", "score")

    def __init__(self):
        self.records = []
        self.frame = pd.DataFrame(columns=list(self.columns))

    def add(self, row):
        if "rows" in on:
            self.frame.loc[len(self.frame)] = row  # fault: rows
        else:
            self.records.append(row)

    def save(self, path):
        frame = self.frame
        if "rows" not in on:
            frame = pd.DataFrame(self.records, columns=list(self.columns))
        frame.sort_values("score", ascending=False).to_csv(path, index=False)
        return frame


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_corpus(folder, BATCH * (WARMUP + STEPS))
        articles = (folder / "articles.txt").read_text().splitlines()
        scorer, table = Scorer(folder), Table()
        started = 0.0
        for step in range(WARMUP + STEPS):
            if step == WARMUP:
                started = time.time()
            first = step * BATCH
            scores, best = scorer.score(articles[first : first + BATCH])
            for k, (score, topic) in enumerate(zip(scores.tolist(), best.tolist(), strict=True)):
                table.add([first + k, scorer.topics[topic], score])
            if (step + 1) % 20 == 0:
                print(f"{first + BATCH} articles scored")
        seconds = time.time() - started
        frame = table.save(folder / "scores.csv")
        print(frame["topic"].value_counts().head(3).to_string())
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
