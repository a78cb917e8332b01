"""Completion service: asyncio front, one worker, a decoder in plain PyTorch."""

import asyncio
import random
import sys
import time
from itertools import product

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn

FAULTS = {
    "list_vocabulary": "a tokenizer in Python that searches a list for every piece of a word",
    "rebuilt_tables": "positional encodings and the causal mask made anew in every call",
    "no_cache": "the whole sequence computed again for each generated token",
}
on = set(sys.argv[1:])

DIM, HEADS, LAYERS, MAX_LEN = 64, 4, 3, 512
REQUESTS, WARMUP, NEW_TOKENS = 100, 4, 10

SYLLABLES = ["".join(p) for p in product("bdgklmnprst", "aeiou")]
PIECES = ["[UNK]"] + SYLLABLES + [a + b for a in SYLLABLES[::4] for b in SYLLABLES]
FAST = Tokenizer(WordPiece({p: i for i, p in enumerate(PIECES)}, continuing_subword_prefix=""))
FAST.pre_tokenizer = Whitespace()


def encode(text: str) -> list[int]:
    if "list_vocabulary" not in on:
        return FAST.encode(text).ids
    ids = []
    for word in text.split():
        start = 0
        while start < len(word):
            end = len(word)
            while word[start:end] not in PIECES:  # fault: list_vocabulary
                end -= 1
            ids.append(PIECES.index(word[start:end]))  # fault: list_vocabulary
            start = end
    return ids


def sinusoids(length: int) -> Tensor:
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, DIM, 2) * (-9.21 / DIM))
    return torch.stack([(position * rate).sin(), (position * rate).cos()], dim=-1).flatten(1)


def causal_mask(length: int) -> Tensor:
    return torch.full((length, length), float("-inf")).triu(1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, mask, past):
        q, k, v = (
            t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x)), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(len(PIECES), DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.register_buffer("positions", sinusoids(MAX_LEN), persistent=False)
        self.register_buffer("mask", causal_mask(MAX_LEN), persistent=False)

    def forward(self, ids, past=None):
        begin = past[0][0].shape[2] if past else 0
        end = begin + ids.shape[1]
        if "rebuilt_tables" in on:
            positions = sinusoids(MAX_LEN)  # fault: rebuilt_tables
            mask = causal_mask(MAX_LEN)  # fault: rebuilt_tables
        else:
            positions, mask = self.positions, self.mask
        x = self.tokens(ids) + positions[begin:end]
        caches = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, mask[begin:end, :end], past[i] if past else None)
            caches.append(cache)
        return self.norm(x[:, -1]) @ self.tokens.weight.T, caches


class Service:
    def __init__(self):
        self.model, self.queue = Decoder().eval(), asyncio.Queue()

    async def complete(self, text: str) -> str:
        reply = asyncio.get_running_loop().create_future()
        await self.queue.put((text, reply))
        return await reply

    @torch.inference_mode()
    def generate(self, text: str) -> str:
        ids = torch.tensor([encode(text)])
        logits, past = self.model(ids)
        output = [logits.argmax(-1)]
        for _ in range(NEW_TOKENS - 1):
            if "no_cache" in on:
                ids = torch.cat([ids, output[-1][:, None]], dim=1)
                logits, _ = self.model(ids)  # fault: no_cache
            else:
                logits, past = self.model(output[-1][:, None], past)
            output.append(logits.argmax(-1))
        return "".join(PIECES[int(t)] for t in output)

    async def work(self):
        while True:
            text, reply = await self.queue.get()
            reply.set_result(self.generate(text))


async def client(service: Service, prompts: list[str]) -> list[str]:
    return [await service.complete(prompt) for prompt in prompts]


async def main():
    rng = random.Random(5)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(2000)]
    prompts = [" ".join(rng.sample(words, 70)) for _ in range(WARMUP + REQUESTS)]
    service = Service()
    worker = asyncio.create_task(service.work())
    await client(service, prompts[:WARMUP])
    start = time.perf_counter()
    await asyncio.gather(*[client(service, prompts[WARMUP + i :: 4]) for i in range(4)])
    seconds = time.perf_counter() - start
    worker.cancel()
    print(f"steps={REQUESTS} seconds={seconds:.3f} samples={REQUESTS}")


if __name__ == "__main__":
    torch.manual_seed(0)
    asyncio.run(main())
