"""A2C on cart poles that NumPy simulates."""

import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "serial": "environments stepped one after the other by Python objects",
    "choice": "actions drawn by np.random.choice for each environment",
    "returns": "returns discounted number by number on elements of tensors",
}
on = set(sys.argv[1:])


@dataclass
class Config:
    envs: int = 32
    horizon: int = 16
    gamma: float = 0.99
    hidden: int = 128
    lr: float = 7e-4
    warmup: int = 5
    updates: int = 120


class CartPoles:
    """All cart poles at once: states (n, 4)."""

    def __init__(self, n, seed):
        self.rng = np.random.default_rng(seed)
        self.state = self.fresh(n)

    def fresh(self, n):
        return self.rng.uniform(-0.05, 0.05, (n, 4)).astype(np.float32)

    def step(self, action):
        x, v, angle, w = self.state.T  # fault: serial
        force = np.where(action == 1, 10.0, -10.0)  # fault: serial
        cos, sin = np.cos(angle), np.sin(angle)  # fault: serial
        push = (force + 0.05 * w**2 * sin) / 1.1  # fault: serial
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))  # fault: serial
        pull = push - 0.05 * turn * cos / 1.1  # fault: serial
        rates = np.stack([v, pull, w, turn], axis=1)  # fault: serial
        self.state = (self.state + 0.02 * rates).astype(np.float32)
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)  # fault: serial
        if done.any():
            self.state[done] = self.fresh(int(done.sum()))
        return self.state, np.ones(len(done), dtype=np.float32), done


class SerialEnvs:
    """One environment after the other, as gym's SyncVectorEnv."""

    def __init__(self, n, seed):
        self.envs = [CartPoles(1, seed + i) for i in range(n)]

    @property
    def state(self):
        return np.concatenate([env.state for env in self.envs])

    def step(self, actions):
        results = []
        for env, action in zip(self.envs, actions):
            results.append(env.step(action[None]))  # fault: serial
        return tuple(np.concatenate(part) for part in zip(*results))  # fault: serial


class ActorCritic(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        layers = [nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()]
        self.body = nn.Sequential(*layers)
        self.heads = nn.Linear(hidden, 3)

    def forward(self, states):
        policy, value = self.heads(self.body(states)).split([2, 1], -1)
        return policy, value.squeeze(-1)


def act(model, states):
    with torch.no_grad():
        policy, _ = model(torch.from_numpy(states))
    probs = policy.softmax(-1)
    if "choice" not in on:
        return probs.multinomial(1).squeeze(1).numpy()
    probs = probs.double().numpy()
    return np.array([np.random.choice(2, p=p / p.sum()) for p in probs])  # fault: choice


def discount(rewards, dones, last, gamma):
    """Return the discounted rewards (t, n) until an episode ends, or the last value."""
    returns = torch.zeros_like(rewards)
    if "returns" in on:
        for n in range(rewards.shape[1]):
            total = last[n]
            for t in reversed(range(len(rewards))):
                if dones[t, n]:  # fault: returns
                    total = torch.zeros(())
                total = rewards[t, n] + gamma * total  # fault: returns
                returns[t, n] = total  # fault: returns
        return returns
    total, keep = last, gamma * (~dones)
    for t in reversed(range(len(rewards))):
        total = rewards[t] + keep[t] * total
        returns[t] = total
    return returns


def update(model, optimizer, envs, cfg):
    states, actions, rewards, dones = [], [], [], []
    for _ in range(cfg.horizon):
        states.append(envs.state)
        actions.append(act(model, envs.state))
        _, reward, done = envs.step(actions[-1])  # fault: serial
        rewards.append(reward)
        dones.append(done)
    policy, values = model(torch.from_numpy(np.stack([*states, envs.state])))
    rewards, dones = torch.from_numpy(np.stack(rewards)), torch.from_numpy(np.stack(dones))
    returns = discount(rewards, dones, values[-1].detach(), cfg.gamma)
    logp = policy[:-1].log_softmax(-1)
    advantage = returns - values[:-1]
    taken = logp.gather(-1, torch.from_numpy(np.stack(actions))[..., None]).squeeze(-1)
    loss = -(taken * advantage.detach()).mean() + 0.5 * advantage.square().mean()
    loss = loss + 0.01 * (logp.exp() * logp).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss.item(), returns.mean().item()


def main(cfg):
    np.random.seed(0)
    torch.manual_seed(0)
    envs = (SerialEnvs if "serial" in on else CartPoles)(cfg.envs, seed=1)
    model = ActorCritic(cfg.hidden)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=cfg.lr, alpha=0.99, eps=1e-5)
    for i in range(cfg.warmup + cfg.updates):
        if i == cfg.warmup:
            started = time.perf_counter()
        loss, mean_return = update(model, optimizer, envs, cfg)
    seconds = time.perf_counter() - started
    print(f"loss {loss:.3f}, return {mean_return:.2f}")
    samples = cfg.updates * cfg.envs * cfg.horizon
    print(f"steps={cfg.updates} seconds={seconds:.4f} samples={samples}")


if __name__ == "__main__":
    main(Config())
