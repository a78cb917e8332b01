"""GAN on 2-D patterns with an averaged generator, through accelerate."""

import copy, sys, time

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULTS = {
    "through_generator": "the discriminator's loss taken back through the generator, with retain_graph",
    "second_forward": "the discriminator run again on the same images for accuracies",
    "ema_copies": "averages of the generator's weights by a deep copy of its state at every step",
}
on = set(sys.argv[1:])
Z, BATCH, STEPS, WARMUP, LR, DECAY = 64, 24, 100, 5, 2e-4, 0.995


def G(c=10):
    return nn.Sequential(
        nn.Linear(Z, 1024), nn.ReLU(),
        nn.Linear(1024, 4 * c * 16), nn.Unflatten(1, (4 * c, 4, 4)),
        nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(),
        nn.ConvTranspose2d(2 * c, c, 4, 2, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
        nn.ConvTranspose2d(c, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip


def D(c=32):
    return nn.Sequential(
        nn.Conv2d(1, c, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(c, 2 * c, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * c, 4 * c, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(4 * c * 16, 1),
    )  # fmt: skip


def patterns(n):
    """Sums of two plane waves, 32 x 32."""
    grid = torch.linspace(-3, 3, 32)
    k = torch.randn(n, 2, 2, 1, 1)
    wave = torch.sin(k[:, 0] * grid.view(1, 1, -1, 1) + k[:, 1] * grid.view(1, 1, 1, -1))
    return wave.mean(1, keepdim=True)


@torch.no_grad()
def update_average(avg, net):
    if "ema_copies" in on:
        new = copy.deepcopy(net.state_dict())  # fault: ema_copies
        old = copy.deepcopy(avg.state_dict())  # fault: ema_copies
        for k in new:
            if new[k].is_floating_point():
                new[k] = DECAY * old[k] + (1 - DECAY) * new[k]  # fault: ema_copies
        avg.load_state_dict(new)  # fault: ema_copies
    else:
        torch._foreach_lerp_(list(avg.parameters()), list(net.parameters()), 1 - DECAY)
        for a, b in zip(avg.buffers(), net.buffers()):
            a.lerp_(b, 1 - DECAY) if a.is_floating_point() else a.copy_(b)


def bce(logits, real):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))


def train():
    acc = Accelerator(cpu=True)
    gen, dis = G(), D()
    avg = copy.deepcopy(gen)
    opt_g = torch.optim.Adam(gen.parameters(), LR, betas=(0.5, 0.999), fused=True)
    opt_d = torch.optim.Adam(dis.parameters(), LR, betas=(0.5, 0.999), fused=True)
    loader = DataLoader(TensorDataset(patterns(960)), BATCH, shuffle=True, drop_last=True)
    gen, dis, opt_g, opt_d, loader = acc.prepare(gen, dis, opt_g, opt_d, loader)

    step, hits, fooled = 0, torch.zeros(()), torch.zeros(())
    while True:
        for (real,) in loader:
            if step == WARMUP:
                t0 = time.perf_counter()
            fake = gen(torch.randn(len(real), Z))

            # discriminator
            opt_d.zero_grad()
            if "through_generator" in on:
                real_out, fake_out = dis(real), dis(fake)
                d_loss = bce(real_out, 1) + bce(fake_out, 0)
                acc.backward(d_loss, retain_graph=True)  # fault: through_generator
            else:
                real_out, fake_out = dis(real), dis(fake.detach())
                d_loss = bce(real_out, 1) + bce(fake_out, 0)
                acc.backward(d_loss)
            if "second_forward" in on:
                hits += (dis(real) > 0).float().mean() / 2  # fault: second_forward
                hits += (dis(fake) < 0).float().mean() / 2  # fault: second_forward
            else:
                hits += (real_out.detach() > 0).float().mean() / 2
                hits += (fake_out.detach() < 0).float().mean() / 2
            opt_d.step()

            # generator
            opt_g.zero_grad()
            dis.requires_grad_(False)
            score = dis(fake)
            g_loss = bce(score, 1)
            acc.backward(g_loss)
            dis.requires_grad_(True)
            opt_g.step()
            update_average(avg, acc.unwrap_model(gen))
            if "second_forward" in on:
                fooled += (dis(fake) > 0).float().mean()  # fault: second_forward
            else:
                fooled += (score.detach() > 0).float().mean()

            step += 1
            if step == WARMUP + STEPS:
                return time.perf_counter() - t0, (hits / step).item(), (fooled / step).item()


if __name__ == "__main__":
    torch.manual_seed(0)
    seconds, accuracy, fooled = train()
    print(f"accuracy of D {accuracy:.2f}, fooled by G {fooled:.2f}")
    print(f"steps={STEPS} seconds={seconds:.3f} samples={STEPS * BATCH}")
