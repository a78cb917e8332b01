"""DDPG for a rover that drives to a beacon between boulders, seen by a range sensor."""

import copy
import math
import random
import sys
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "rays": "the range sensor computed ray by ray and boulder by boulder",
    "replay": "minibatches assembled from tuples in a deque",
    "histograms": "histograms of all weights taken in every step",
}
on = set(sys.argv[1:])

RAYS, BOULDERS, REACH = 60, 44, 5.0
OBS, ACT = RAYS + 4, 2
BATCH, GAMMA, TAU, SIGMA = 256, 0.98, 0.005, 0.2
START_STEPS, WARMUP, STEPS, LOG_EVERY = 600, 10, 200, 50

random.seed(0)
torch.manual_seed(0)


class RoverEnv:
    """State: position and heading; actions: thrust and turn, each in [-1, 1]."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.boulders = self.rng.uniform(-8, 8, (BOULDERS, 2))
        self.radii = self.rng.uniform(0.3, 1.0, BOULDERS)
        self.fan = np.linspace(-math.pi, math.pi, RAYS, endpoint=False)

    def reset(self):
        self.pos, self.goal = self.rng.uniform(-6, 6, (2, 2))
        self.heading, self.t = self.rng.uniform(-math.pi, math.pi), 0
        return self.observe()

    def ranges(self):
        if "rays" in on:
            out = []
            for angle in self.fan + self.heading:
                nearest, ray = REACH, np.array([math.cos(angle), math.sin(angle)])  # fault: rays
                for centre, radius in zip(self.boulders, self.radii, strict=True):
                    to = centre - self.pos  # fault: rays
                    along = np.dot(to, ray)  # fault: rays
                    gap = radius**2 - np.dot(to, to) + along**2  # fault: rays
                    if gap > 0 and along > 0:
                        nearest = min(nearest, along - math.sqrt(gap))
                out.append(max(nearest, 0.0))
            return np.array(out)
        angles, to = self.fan + self.heading, self.boulders - self.pos
        along = np.stack([np.cos(angles), np.sin(angles)], 1) @ to.T
        gap = self.radii**2 - (to**2).sum(1) + along**2
        distance = np.where((gap > 0) & (along > 0), along - np.sqrt(np.maximum(gap, 0.0)), REACH)
        return distance.min(1).clip(0.0, REACH)

    def observe(self):
        to_goal = self.goal - self.pos
        bearing = math.atan2(to_goal[1], to_goal[0]) - self.heading
        self.scan = self.ranges()
        extra = [math.hypot(*to_goal), math.cos(bearing), math.sin(bearing), self.t / 100]
        return np.concatenate([self.scan / REACH, extra]).astype(np.float32)

    def step(self, action):
        before = math.hypot(*(self.goal - self.pos))
        self.heading += 0.4 * float(action[1])
        speed = 0.3 * (1 + float(action[0])) / 2
        self.pos = self.pos + speed * np.array([math.cos(self.heading), math.sin(self.heading)])
        self.t += 1
        obs = self.observe()
        crashed, arrived = self.scan.min() <= 0.0, obs[RAYS] < 0.5
        reward = before - float(obs[RAYS]) - 5.0 * crashed + 5.0 * arrived
        return obs, reward, bool(crashed or arrived), self.t >= 100


class DequeReplay(deque):
    def add(self, *transition):
        self.append(transition)

    def sample(self, n):
        columns = zip(*random.sample(self, n), strict=True)  # fault: replay
        return [torch.tensor(list(c), dtype=torch.float32) for c in columns]  # fault: replay


class ArrayReplay:
    def __init__(self, maxlen):
        shapes = [(maxlen, OBS), (maxlen, ACT), maxlen, (maxlen, OBS), maxlen]
        self.columns = [np.zeros(shape, np.float32) for shape in shapes]
        self.n, self.maxlen, self.rng = 0, maxlen, np.random.default_rng(1)

    def add(self, *transition):
        for column, value in zip(self.columns, transition, strict=True):
            column[self.n % self.maxlen] = value
        self.n += 1

    def sample(self, n):
        rows = self.rng.integers(0, min(self.n, self.maxlen), n)
        return [torch.from_numpy(c[rows]) for c in self.columns]


def mlp(inputs, outputs, width=352):
    hidden = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


actor, critic = mlp(OBS, ACT).append(nn.Tanh()), mlp(OBS + ACT, 1)
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
online = [*actor.parameters(), *critic.parameters()]
targets = [*actor_target.parameters(), *critic_target.parameters()]
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-4, fused=True)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, fused=True)
replay = DequeReplay(maxlen=10_000) if "replay" in on else ArrayReplay(maxlen=10_000)


def q(network, obs, act):
    return network(torch.cat([obs, act], 1)).squeeze(1)


def update():
    obs, act, reward, after, done = replay.sample(BATCH)
    with torch.no_grad():
        backup = reward + GAMMA * (1 - done) * q(critic_target, after, actor_target(after))
    critic_loss = F.mse_loss(q(critic, obs, act), backup)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    critic.requires_grad_(False)
    actor_loss = -q(critic, obs, actor(obs)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic.requires_grad_(True)
    with torch.no_grad():
        torch._foreach_lerp_(targets, online, TAU)


env = RoverEnv()
obs, started = env.reset(), 0.0
rng = np.random.default_rng(2)
for step in range(-START_STEPS - WARMUP, STEPS):
    if step == 0:
        started = time.perf_counter()
    if step < -WARMUP:
        action = rng.uniform(-1, 1, ACT).astype(np.float32)
    else:
        with torch.no_grad():
            action = actor(torch.from_numpy(obs)).numpy()
        action = (action + SIGMA * rng.normal(size=ACT)).clip(-1, 1).astype(np.float32)
    after, reward, done, truncated = env.step(action)
    replay.add(obs, action, reward, after, float(done))
    obs = env.reset() if done or truncated else after
    if step >= -WARMUP:
        update()
    if step >= 0 and ("histograms" in on or step % LOG_EVERY == 0):
        histograms = [np.histogram(p.detach(), bins=50) for p in online]  # fault: histograms
        if step % LOG_EVERY == 0:
            print(f"step {step}: spread of the actor's weights {np.ptp(histograms[2][1]):.3f}")

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
