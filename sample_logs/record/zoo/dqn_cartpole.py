# DQN, everything in one file. Usage: python dqn_cartpole.py [fault ...]
import copy
import math
import random
import sys
import time
from collections import deque, namedtuple
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "env_loop": "environments acted on and stepped one by one",
    "replay_stack": "a replay batch gathered element by element, then stacked",
    "target_copy": "the target network's update by deep copies of both state dicts in every step",
}
on = set(sys.argv[1:])

args = SimpleNamespace(
    seed=1,
    num_envs=24,
    buffer_size=20_000,
    batch_size=256,
    gamma=0.99,
    tau=0.005,
    epsilon=0.1,
    learning_rate=2.5e-4,
    hidden=384,
    warmup=10,
    total_steps=160,
)


def physics(state, action):
    """CartPole; `state` is (..., 4)."""
    x, x_dot, theta, theta_dot = np.moveaxis(state, -1, 0)
    force = np.where(action == 1, 10.0, -10.0)
    cos, sin = np.cos(theta), np.sin(theta)
    temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
    theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    x_acc = temp - 0.05 * theta_acc * cos / 1.1
    new = [x + 0.02 * x_dot, x_dot + 0.02 * x_acc]
    new += [theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
    nxt = np.stack(new, -1).astype(np.float32)
    done = (np.abs(nxt[..., 0]) > 2.4) | (np.abs(nxt[..., 2]) > 12 * 2 * math.pi / 360)
    return nxt, done


class CartPole:
    def __init__(self, shape=()):
        self.state = np.random.uniform(-0.05, 0.05, (*shape, 4)).astype(np.float32)

    def step(self, action):
        nxt, done = physics(self.state, action)  # fault: env_loop
        fresh = np.random.uniform(-0.05, 0.05, nxt.shape).astype(np.float32)
        self.state = np.where(done[..., None], fresh, nxt)  # fault: env_loop
        return nxt, np.ones_like(done, dtype=np.float32), done


Transition = namedtuple("Transition", "obs action reward next_obs done")


class ListReplay:
    def __init__(self, size):
        self.memory = deque(maxlen=size)

    def add(self, *rows):
        for row in zip(*rows):
            self.memory.append(Transition(*map(torch.as_tensor, row)))  # fault: replay_stack

    def sample(self, n):
        picks = random.sample(self.memory, n)  # fault: replay_stack
        return [torch.stack(column) for column in zip(*picks)]  # fault: replay_stack


class ArrayReplay:
    def __init__(self, size):
        kinds = [((4,), torch.float32), ((), torch.int64), ((), torch.float32)]
        kinds += [((4,), torch.float32), ((), torch.bool)]
        self.columns = [torch.zeros((size, *shape), dtype=dtype) for shape, dtype in kinds]
        self.size, self.pos, self.full = size, 0, 0

    def add(self, *rows):
        where = torch.arange(self.pos, self.pos + len(rows[0])) % self.size
        for column, values in zip(self.columns, rows):
            column[where] = torch.as_tensor(values)
        self.pos = (self.pos + len(where)) % self.size
        self.full = min(self.full + len(where), self.size)

    def sample(self, n):
        rows = torch.randint(self.full, (n,))
        return [column[rows] for column in self.columns]


def make_q():
    h = args.hidden
    return nn.Sequential(nn.Linear(4, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 2))


random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
q, target = make_q(), make_q()
target.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=args.learning_rate)
replay = (ListReplay if "replay_stack" in on else ArrayReplay)(args.buffer_size)
if "env_loop" in on:
    envs = [CartPole() for _ in range(args.num_envs)]
else:
    envs = CartPole((args.num_envs,))

for step in range(args.warmup + args.total_steps + args.batch_size // args.num_envs):
    # ALGO LOGIC: act
    explore = np.random.rand(args.num_envs) < args.epsilon
    actions = np.random.randint(0, 2, args.num_envs)
    if "env_loop" in on:
        obs = np.stack([env.state for env in envs])
        results = []
        for i, env in enumerate(envs):
            if not explore[i]:
                with torch.no_grad():
                    actions[i] = q(torch.from_numpy(env.state)).argmax().item()  # fault: env_loop
            results.append(env.step(actions[i]))  # fault: env_loop
        next_obs, rewards, dones = (np.stack(part) for part in zip(*results))
    else:
        obs = envs.state
        with torch.no_grad():
            greedy = q(torch.from_numpy(obs)).argmax(1).numpy()
        actions = np.where(explore, actions, greedy)
        next_obs, rewards, dones = envs.step(actions)
    replay.add(obs, actions, rewards, next_obs, dones)  # fault: replay_stack
    if step < args.batch_size // args.num_envs:
        continue  # nothing to learn from yet
    if step == args.warmup + args.batch_size // args.num_envs:
        start_time = time.time()

    # ALGO LOGIC: train
    batch = replay.sample(args.batch_size)  # fault: replay_stack
    b_obs, b_actions, b_rewards, b_next, b_dones = batch
    with torch.no_grad():
        td_target = b_rewards + args.gamma * target(b_next).amax(1) * ~b_dones
    loss = F.smooth_l1_loss(q(b_obs).gather(1, b_actions[:, None]).squeeze(1), td_target)
    opt.zero_grad()
    loss.backward()
    opt.step()

    # soft update θ′ ← τ θ + (1 − τ) θ′
    if "target_copy" in on:
        target_state = copy.deepcopy(target.state_dict())  # fault: target_copy
        q_state = copy.deepcopy(q.state_dict())  # fault: target_copy
        for key in q_state:
            new = args.tau * q_state[key] + (1 - args.tau) * target_state[key]  # fault: target_copy
            target_state[key] = new
        target.load_state_dict(target_state)  # fault: target_copy
    else:
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(q.parameters()), args.tau)

seconds = time.time() - start_time
samples = args.total_steps * args.batch_size
print(f"steps={args.total_steps} seconds={seconds:.4f} samples={samples}")
