# Sequence classification with accelerate: small micro-batches, gradients accumulated.
import sys
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

FAULTS = {
    "clip_loop": "gradients clipped parameter by parameter, with the norm of each read by item()",
    "histograms": "histograms of all weights and gradients taken for the log after each step",
    "second_forward": "the loss of each micro-batch computed a second time for the running average",
}
on = set(sys.argv[1:])

MICRO_BATCH = 2
ACCUMULATE = 2
UPDATES = 100
WARMUP_UPDATES = 5
MAX_LENGTH = 16
VOCABULARY = 12_000
MAX_GRAD_NORM = 1.0


def get_dataloader():
    # "reviews" of random words, positive when they hold more good words than bad ones
    words = torch.randint(100, VOCABULARY, (2048, MAX_LENGTH))
    lengths = torch.randint(MAX_LENGTH // 2, MAX_LENGTH + 1, (2048, 1))
    mask = (torch.arange(MAX_LENGTH) < lengths).long()
    words = words * mask
    good, bad = (words > 9000).sum(1), ((words > 0) & (words < 3000)).sum(1)
    dataset = TensorDataset(words, mask, (good > bad).long())
    return DataLoader(dataset, batch_size=MICRO_BATCH, shuffle=True, drop_last=True)


def get_model():
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def clip_gradients(accelerator, model):
    if "clip_loop" not in on:
        accelerator.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        return
    total = 0.0
    for p in model.parameters():
        total += torch.sum(p.grad.detach() ** 2).item()  # fault: clip_loop
    coef = min(1.0, MAX_GRAD_NORM / (total**0.5 + 1e-6))
    for p in model.parameters():
        p.grad = p.grad * coef  # fault: clip_loop


def log_histograms(model, logs, step):
    entry = {"step": step}
    for name, p in model.named_parameters():
        entry[f"weights/{name}"] = torch.histc(p.detach(), 64).tolist()  # fault: histograms
        entry[f"gradients/{name}"] = torch.histc(p.grad, 64).tolist()  # fault: histograms
    logs.append(entry)


def main():
    set_seed(7)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATE)
    model = get_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    scheduler = get_linear_schedule_with_warmup(optimizer, 10, 1000)
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, get_dataloader(), scheduler
    )
    model.train()

    logs = []
    updates = 0
    running_loss = torch.zeros(())
    while updates < WARMUP_UPDATES + UPDATES:
        for input_ids, attention_mask, labels in loader:
            batch = dict(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                if "second_forward" in on:
                    running_loss += model(**batch).loss.item()  # fault: second_forward
                else:
                    running_loss += loss.detach()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    clip_gradients(accelerator, model)
                    if "histograms" in on:
                        log_histograms(model, logs, updates)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                updates += 1
                if updates == WARMUP_UPDATES:
                    start = time.perf_counter()
                if updates == WARMUP_UPDATES + UPDATES:
                    break

    seconds = time.perf_counter() - start
    samples = UPDATES * ACCUMULATE * MICRO_BATCH
    accelerator.print(f"average loss {running_loss.item() / (updates * ACCUMULATE):.5f}")
    accelerator.print(f"steps={UPDATES} seconds={seconds:.3f} samples={samples}")


if __name__ == "__main__":
    main()
