"""A transformer encoder learns the topics of sentences, tokenised as they are read."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import random
import re
import unicodedata
from collections.abc import Sequence, Set
from functools import partial
from itertools import pairwise, product

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "padded_to_maximum": Fault(kind="padding to the maximum length"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
    "written_attention": Fault("unfused-attention", kind="attention written out"),
}
PAIRS = (
    ("no_workers",),
    ("padded_to_maximum",),
    ("one_by_one",),
    ("written_attention",),
    ("no_workers", "one_by_one"),
    ("no_workers", "padded_to_maximum", "written_attention"),
)
BEHIND = {("written_attention",): {"padded_to_maximum"}}
SEED = 20_301
BATCH = 32
SENTENCES, LONGEST = 96_000, 80
PIECES = 3_000
WIDTH, HEADS, DEPTH = 48, 4, 2
TOPICS, PADDING = 6, 0
CONSONANTS, VOWELS = "bcdfghklmnprstvz", "aeiou"
LETTERS = (*CONSONANTS, *VOWELS, ".")
WORD = re.compile(r"[a-z]+|[0-9]|[^\sa-z0-9]")


def word(source: random.Random) -> str:
    """Returns a made-up word of a few syllables."""
    return "".join(map(source.choice, (CONSONANTS, VOWELS) * source.randint(2, 6)))


class Sentences(Dataset[tuple[Tensor, int]]):
    """Sentences as text, of which each access normalizes one and splits it by byte-pair merges."""

    def __init__(self) -> None:
        source = random.Random(SEED)  # noqa: S311 (no secrets)
        words = [word(source) for _ in range(5_000)]
        counts = [source.randint(3, 15) for _ in range(2_000)]
        self._texts = [" ".join(source.choices(words, k=count)) + "." for count in counts]
        syllables = [first + second for first in CONSONANTS for second in VOWELS]
        merges = [*product(CONSONANTS, VOWELS), *product(syllables, syllables)]
        self._ranks = {pair: rank for rank, pair in enumerate(merges[:PIECES])}
        pieces = enumerate([*LETTERS, *map("".join, self._ranks)], start=1)
        self._ids = {piece: number for number, piece in pieces}

    def __len__(self) -> int:
        return SENTENCES

    def _pieces(self, name: str) -> list[str]:
        """Merges the letters of a word, always the pair of the lowest rank."""
        pieces = list(name)
        while len(pieces) > 1:
            pair = min(pairwise(pieces), key=lambda pair: self._ranks.get(pair, PIECES))
            if pair not in self._ranks:
                break
            begin = list(pairwise(pieces)).index(pair)
            pieces[begin : begin + 2] = ["".join(pair)]
        return pieces

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        text = unicodedata.normalize("NFKD", self._texts[index % len(self._texts)]).lower()
        ids = [self._ids[piece] for name in WORD.findall(text) for piece in self._pieces(name)]
        return torch.tensor(ids[:LONGEST]), index % TOPICS


def collate(rows: Sequence[tuple[Tensor, int]], *, to_maximum: bool) -> tuple[Tensor, Tensor]:
    """Returns the padded sentences and the topics of a batch."""
    ids = pad_sequence([row for row, _ in rows], batch_first=True, padding_value=PADDING)
    if to_maximum:
        ids = functional.pad(ids, (0, LONGEST - ids.shape[1]), value=PADDING)
    return ids, torch.tensor([topic for _, topic in rows])


class Layer(nn.Module):
    """Attention, by torch's function or written out, and a perceptron."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.written = written
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.perceptron = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    @override
    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        heads = self.projections(self.norms[0](tokens)).unflatten(-1, (3, HEADS, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        if self.written:
            scores = torch.matmul(query, key.transpose(-2, -1)) / (WIDTH // HEADS) ** 0.5
            scores = scores.masked_fill(~mask, float("-inf"))
            mixed = torch.matmul(functional.softmax(scores, dim=-1), value)
        else:
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        tokens = tokens + self.output(mixed.transpose(1, 2).flatten(2))
        result: Tensor = tokens + self.perceptron(self.norms[1](tokens))
        return result


class TextClassifier(nn.Module):
    """Tokens and positions, mixed by the layers; their mean is classified."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1 + len(LETTERS) + PIECES, WIDTH, padding_idx=PADDING)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer(written=written) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.topics = nn.Linear(WIDTH, TOPICS)

    @override
    def forward(self, ids: Tensor) -> Tensor:
        is_token = ids != PADDING
        tokens = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for layer in self.layers:
            tokens = layer(tokens, is_token[:, None, None, :])
        sums = (self.norm(tokens) * is_token[..., None]).sum(dim=1)
        logits: Tensor = self.topics(sums / is_token.sum(dim=1, keepdim=True))
        return logits


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    workers = 0 if "no_workers" in faults else 1
    loader = DataLoader(
        Sentences(),
        batch_size=BATCH,
        shuffle=True,
        collate_fn=partial(collate, to_maximum="padded_to_maximum" in faults),
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    model = TextClassifier(written="written_attention" in faults)
    fused = "one_by_one" not in faults
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False, fused=fused)
    batches = endless(loader)
    while steps.remain:
        ids, topics = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(ids), topics, label_smoothing=0.1).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        steps.step()
