"""Direct preference optimization of a small GPT-2 against a frozen copy of itself."""

import copy
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

FAULTS = {
    "reference_grad": "gradients through the reference model, which no optimizer updates",
    "prompt_logits": "vocabulary scores of the prompt, which the loss masks",
    "monitor": "the divergence from the reference over the whole vocabulary computed in every step",
}
on = set(sys.argv[1:])


@dataclass
class Config:
    vocab: int = 2000
    prompt: int = 48
    answer: int = 16
    pairs: int = 4
    beta: float = 0.1
    lr: float = 1e-4
    warmup: int = 4
    steps: int = 60


cfg = Config()
PRINT_EVERY = 20
torch.manual_seed(0)


def make_data(count):
    prompts = torch.randint(cfg.vocab, (count, cfg.prompt))
    chosen = torch.randint(cfg.vocab // 2, (count, cfg.answer))
    rejected = torch.randint(cfg.vocab // 2, cfg.vocab, (count, cfg.answer))
    return [
        {"chosen": torch.cat([p, c]), "rejected": torch.cat([p, r])}
        for p, c, r in zip(prompts, chosen, rejected, strict=True)
    ]


def collate(rows):
    """Chosen answers in the first half of the batch, rejected in the second."""
    return torch.stack([r["chosen"] for r in rows] + [r["rejected"] for r in rows])


def sequence_logps(model, ids):
    """Log-probability of each answer given its prompt, and the scores that it comes from."""
    if "prompt_logits" in on:
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]  # fault: prompt_logits
        labels = ids[:, 1:]
        mask = torch.arange(1, ids.shape[1]) >= cfg.prompt
    else:
        output = model(input_ids=ids, use_cache=False, logits_to_keep=cfg.answer + 1)
        logits, labels = output.logits[:, :-1], ids[:, cfg.prompt :]
        mask = torch.ones(cfg.answer, dtype=torch.bool)
    losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return -(losses * mask).sum(-1), logits[:, mask]


def dpo_loss(policy_logps, reference_logps):
    ratio = policy_logps - reference_logps
    chosen, rejected = ratio.chunk(2)
    margin = cfg.beta * (chosen - rejected)
    return -F.logsigmoid(margin).mean(), margin.detach()


@torch.no_grad()
def divergence(policy_logits, reference_logits):
    policy_log_probs = policy_logits.log_softmax(-1)  # fault: monitor
    reference_log_probs = reference_logits.log_softmax(-1)  # fault: monitor
    gap = policy_log_probs - reference_log_probs  # fault: monitor
    return (policy_log_probs.exp() * gap).sum(-1).mean().item()  # fault: monitor


policy = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=cfg.vocab,
        n_positions=cfg.prompt + cfg.answer,
        n_embd=128,
        n_layer=2,
        n_head=4,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
    )
)
reference = copy.deepcopy(policy).eval()
policy.train()
optimizer = torch.optim.AdamW(policy.parameters(), lr=cfg.lr, fused=True)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=20)

loader = torch.utils.data.DataLoader(
    make_data((cfg.warmup + cfg.steps) * cfg.pairs),
    batch_size=cfg.pairs,
    shuffle=True,
    collate_fn=collate,
)

started = 0.0
for step, ids in enumerate(loader):
    if step == cfg.warmup:
        started = time.perf_counter()
    if "reference_grad" in on:
        reference_logps, reference_logits = sequence_logps(reference, ids)  # fault: reference_grad
    else:
        with torch.no_grad():
            reference_logps, reference_logits = sequence_logps(reference, ids)
    logps, logits = sequence_logps(policy, ids)  # fault: prompt_logits
    loss, margin = dpo_loss(logps, reference_logps)
    optimizer.zero_grad()
    loss.backward()  # fault: reference_grad  # fault: prompt_logits
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if "monitor" in on or step % PRINT_EVERY == 0:
        kl = divergence(logits, reference_logits)  # fault: monitor
    if step % PRINT_EVERY == 0:
        accuracy = (margin > 0).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, accuracy {accuracy:.2f}, KL {kl:.5f}")

seconds = time.perf_counter() - started
print(f"steps={cfg.steps} seconds={seconds:.4f} samples={cfg.steps * cfg.pairs}")
