"""SAC for a planar arm that reaches for targets, with a replay buffer."""

import copy
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "replace": "a permutation of the whole buffer for each sample, by np.random.choice",
    "critics": "gradients of the critics computed in the actor's update and thrown away",
    "moments": "mean and deviation of all stored observations computed in every step",
}
on = set(sys.argv[1:])

JOINTS = 6
OBS, ACT = 3 * JOINTS + 2, JOINTS
CAPACITY, FILL = 80_000, 60_000
BATCH, ACTOR_WIDTH, CRITIC_WIDTH = 160, 128, 320
GAMMA, TAU, ALPHA = 0.98, 0.005, 0.1
WARMUP, STEPS = 5, 150


class Arm:
    def __init__(self):
        self.rng, self.left = np.random.default_rng(0), 0
        self.obs = self.observe()

    def observe(self):
        if self.left == 0:
            self.angle = self.rng.uniform(-np.pi, np.pi, JOINTS)
            self.speed, self.left = np.zeros(JOINTS), 50
            self.target = self.rng.uniform(-JOINTS / 2, JOINTS / 2, 2)
        total = self.angle.cumsum()
        joints = np.stack([np.cos(total), np.sin(total)])
        self.miss = joints.sum(1) - self.target
        return np.concatenate([*joints, self.speed, self.miss]).astype(np.float32)

    def step(self, action):
        """Return the transition; a new episode starts behind it every 50 steps."""
        before, self.left = self.obs, self.left - 1
        self.speed = 0.9 * self.speed + 0.2 * action
        self.angle += 0.1 * self.speed
        self.obs = self.observe()
        return before, action, -np.hypot(*self.miss), self.obs


class ReplayBuffer:
    def __init__(self):
        self.size = 0
        self.obs = np.zeros((CAPACITY, OBS), np.float32)
        self.obs2 = np.zeros((CAPACITY, OBS), np.float32)
        self.act = np.zeros((CAPACITY, ACT), np.float32)
        self.rew = np.zeros(CAPACITY, np.float32)
        self.sum, self.squares = np.zeros(OBS), np.zeros(OBS)

    def add(self, obs, act, rew, obs2):
        i = self.size
        self.sum += obs
        self.squares += obs.astype(np.float64) ** 2
        self.obs[i], self.act[i], self.rew[i], self.obs2[i] = obs, act, rew, obs2
        self.size += 1

    def moments(self):
        if "moments" in on:
            seen = self.obs[: self.size]
            return seen.mean(0), seen.std(0) + 1e-3  # fault: moments
        mean = self.sum / self.size
        deviation = np.sqrt(self.squares / self.size - mean**2)
        return mean.astype(np.float32), deviation.astype(np.float32) + 1e-3

    def sample(self, rng):
        if "replace" in on:
            selected = np.random.choice(self.size, BATCH, replace=False)  # fault: replace
        else:
            selected = rng.choice(self.size, BATCH, replace=False, shuffle=False)
        mean, deviation = self.moments()
        obs, obs2 = ((x[selected] - mean) / deviation for x in (self.obs, self.obs2))
        return map(torch.from_numpy, (obs, self.act[selected], self.rew[selected], obs2))


def mlp(n_in, width, n_out):
    layers = [nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, n_out))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(OBS, ACTOR_WIDTH, 2 * ACT)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, -1)
        log_std = log_std.clamp(-5, 2)
        noise = torch.randn_like(mean)
        raw = mean + log_std.exp() * noise
        logp = (-0.5 * noise**2 - log_std - 2 * (np.log(2) - raw - F.softplus(-2 * raw))).sum(-1)
        return raw.tanh(), logp


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = (mlp(OBS + ACT, CRITIC_WIDTH, 1) for _ in range(2))

    def forward(self, obs, act):
        x = torch.cat([obs, act], -1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


def train_step(actor, critics, target, actor_opt, critic_opt, obs, act, rew, obs2):
    with torch.no_grad():
        act2, logp2 = actor(obs2)
        goal = rew + GAMMA * (torch.min(*target(obs2, act2)) - ALPHA * logp2)
    critic_loss = sum(F.mse_loss(q, goal) for q in critics(obs, act))
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    if "critics" not in on:
        critics.requires_grad_(False)
    new, logp = actor(obs)
    actor_loss = (ALPHA * logp - torch.min(*critics(obs, new))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()  # fault: critics
    actor_opt.step()
    critics.requires_grad_(True)
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(critics.parameters()), TAU)
    return critic_loss


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    rng, env, buffer = np.random.default_rng(0), Arm(), ReplayBuffer()
    for _ in range(FILL):
        buffer.add(*env.step(rng.uniform(-1, 1, ACT)))
    actor, critics = Actor(), Critics()
    target = copy.deepcopy(critics).requires_grad_(False)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4, fused=True)
    critic_opt = torch.optim.Adam(critics.parameters(), lr=3e-4, fused=True)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            started = time.time()
        mean, deviation = buffer.moments()
        with torch.no_grad():
            action = actor(torch.from_numpy((env.obs - mean) / deviation))[0].numpy()
        buffer.add(*env.step(action))
        loss = train_step(actor, critics, target, actor_opt, critic_opt, *buffer.sample(rng))
    seconds = time.time() - started
    print(f"critic loss {loss.item():.3f}")
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
