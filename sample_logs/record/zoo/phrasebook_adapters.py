"""Fine-tune a small causal language model on a phrasebook: hand-written LoRA, accelerate."""

import math
import random
import sys
import time

import torch
from accelerate import Accelerator
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

FAULTS = {
    "recompute": "activations of a small model recomputed in the backward pass",
    "base_gradients": "gradients of frozen weights, which no optimizer holds",
    "template": "the chat template applied and tokenized in each batch",
}
on = set(sys.argv[1:])

BATCH, RANK, ALPHA = 8, 8, 16
WARMUP, STEPS = 5, 60
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] | trim }} <|end|> "
    "{% endfor %}{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


def make_phrases(n=1200, seed=0):
    rng = random.Random(seed)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(500)]
    phrases = []
    for _ in range(n):
        phrases.append(
            [
                {"role": "system", "content": "You translate phrases of travellers."},
                {"role": "user", "content": " ".join(rng.choices(words, k=20))},
                {"role": "assistant", "content": " ".join(rng.choices(words, k=20))},
            ]
        )
    return phrases


def make_tokenizer(phrases):
    special = ["<pad>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator((m["content"] for chat in phrases for m in chat), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", chat_template=TEMPLATE
    )


class LoRALinear(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.empty(RANK, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, RANK))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T * (ALPHA / RANK)


def add_adapters(model, names=("q_proj", "v_proj")):
    if "base_gradients" not in on:
        model.requires_grad_(False)
    for module in list(model.modules()):
        for name in names:
            if hasattr(module, name):
                setattr(module, name, LoRALinear(getattr(module, name)))
    return [p for name, p in model.named_parameters() if name.endswith((".a", ".b"))]


def encode(tokenizer, chat):
    """Token ids of a chat, and labels that leave out the prompt."""
    ids = tokenizer.apply_chat_template(chat, return_dict=False)
    prompt = tokenizer.apply_chat_template(chat[:-1], add_generation_prompt=True, return_dict=False)
    return ids, [-100] * len(prompt) + ids[len(prompt) :]


class Collator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        if "template" in on:
            rows = [encode(self.tokenizer, chat) for chat in rows]  # fault: template
        longest = max(len(ids) for ids, _ in rows)
        pad = self.tokenizer.pad_token_id
        fill = [longest - len(ids) for ids, _ in rows]
        return {
            "input_ids": torch.tensor([r[0] + [pad] * n for r, n in zip(rows, fill, strict=True)]),
            "attention_mask": torch.tensor([[1] * (longest - n) + [0] * n for n in fill]),
            "labels": torch.tensor([r[1] + [-100] * n for r, n in zip(rows, fill, strict=True)]),
        }


def main():
    torch.manual_seed(0)
    phrases = make_phrases()
    tokenizer = make_tokenizer(phrases)
    rows = phrases if "template" in on else [encode(tokenizer, chat) for chat in phrases]
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
    )
    model = Qwen2ForCausalLM(config)
    if "recompute" in on:
        model.gradient_checkpointing_enable({"use_reentrant": False})  # fault: recompute
    adapters = add_adapters(model)
    optimizer = torch.optim.AdamW(adapters, lr=2e-3, weight_decay=0.0, fused=True)
    loader = DataLoader(rows, BATCH, shuffle=True, drop_last=True, collate_fn=Collator(tokenizer))
    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()

    step, started = 0, 0.0
    while step < WARMUP + STEPS:
        for batch in loader:
            if step == WARMUP:
                started = time.time()
            loss = model(**batch).loss
            accelerator.backward(loss)  # fault: recompute # fault: base_gradients
            accelerator.clip_grad_norm_(adapters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 20 == 0:
                accelerator.print(f"step {step} loss {loss.item():.3f}")
            if step == WARMUP + STEPS:
                break
    seconds = time.time() - started
    accelerator.print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
