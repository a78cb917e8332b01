"""Scores the texts that a small causal language model generates against their references."""

import argparse
import math
import time
from collections import Counter

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

FAULTS = {
    "cache": "generation without the cache of keys and values",
    "padding": "prompts padded to the length of the longest in the corpus",
    "running_bleu": "BLEU of all texts so far computed anew in each batch",
}
parser = argparse.ArgumentParser()
parser.add_argument("faults", nargs="*")
on = set(parser.parse_args().faults)

VOCAB, PAD = 1000, 0
BATCH, WARMUP, STEPS = 8, 3, 60
NEW_TOKENS, LONGEST = 8, 64

torch.manual_seed(0)
rng = np.random.default_rng(0)


def build_corpus():
    """Prompts of alike length come together; a few very long ones come last."""
    lengths = np.sort(rng.integers(20, 32, BATCH * (WARMUP + STEPS)))
    lengths = np.append(lengths, [LONGEST] * BATCH)
    prompts = [rng.integers(1, VOCAB, n).tolist() for n in lengths]
    references = [rng.integers(1, VOCAB, NEW_TOKENS).tolist() for _ in lengths]
    return prompts, references


def collate(prompts):
    width = LONGEST if "padding" in on else max(map(len, prompts))
    ids = torch.full((len(prompts), width), PAD)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
    return ids, (ids != PAD).long()


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def count_matches(hypothesis, reference):
    """Matches and candidates for n-grams of 1 to 4 tokens, and the two lengths."""
    matches, totals = [], []
    for n in range(1, 5):
        h, r = ngrams(hypothesis, n), ngrams(reference, n)  # fault: running_bleu
        matches.append(sum((h & r).values()))  # fault: running_bleu
        totals.append(max(len(hypothesis) - n + 1, 0))
    return np.array([*matches, *totals, len(hypothesis), len(reference)])


def bleu(counts):
    matches, totals = counts[:4], counts[4:8]
    precision = np.log((matches + 1) / (totals + 1)).mean()
    brevity = min(0.0, 1 - counts[9] / max(counts[8], 1))
    return 100 * math.exp(precision + brevity)


class Report:
    def __init__(self):
        self.hypotheses, self.references = [], []
        self.counts = np.zeros(10)

    def update(self, hypotheses, references):
        self.hypotheses += hypotheses
        self.references += references
        if "running_bleu" in on:
            both = zip(self.hypotheses, self.references, strict=True)
            self.counts = sum(count_matches(h, r) for h, r in both)  # fault: running_bleu
        else:
            for h, r in zip(hypotheses, references, strict=True):
                self.counts += count_matches(h, r)
        return bleu(self.counts)


def main():
    config = GPT2Config(
        vocab_size=VOCAB,
        n_positions=128,
        n_embd=128,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=PAD,
    )
    model = GPT2LMHeadModel(config).eval()
    prompts, references = build_corpus()
    report = Report()
    started = 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            started = time.perf_counter()
        rows = slice(step * BATCH, (step + 1) * BATCH)
        ids, mask = collate(prompts[rows])
        output = model.generate(  # fault: cache  # fault: padding
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache="cache" not in on,
        )
        texts = output[:, ids.shape[1] :].tolist()
        score = report.update(texts, references[rows])  # fault: running_bleu
        if step % 10 == 0:
            print(f"batch {step}: BLEU so far {score:.2f}")
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
