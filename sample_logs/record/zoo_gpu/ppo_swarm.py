"""PPO on many simulated oscillators at once, with the simulation in torch on the same device."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn

FAULTS = {
    "episodes": "returns of finished episodes read one by one with item() in the rollout",
    "shuffle": "minibatches drawn by a NumPy permutation and copied to the device as index arrays",
    "values": "the critic run a second time per step of the rollout, on the next observation",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
ENVS, HORIZON, WIDTH, JOINTS = (16384, 16, 512, 16) if GPU else (32, 4, 16, 4)
EPOCHS, MINIBATCHES, EPISODE = 2, 4, (400 if GPU else 20)
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
BATCH = ENVS * HORIZON

torch.manual_seed(0)
np.random.seed(0)
torch.set_float32_matmul_precision("high")


def physics(pos, vel, action):
    force = action.clamp(-1, 1)
    vel = vel + 0.02 * (4 * force - 3 * torch.sin(pos) - 0.1 * vel)
    pos = pos + 0.02 * vel
    reward = 1 - pos.square().mean(1) - 0.01 * force.square().mean(1)
    return pos, vel, reward


class Swarm:
    """Oscillators that are to be held at rest; an environment restarts by itself at its end."""

    def __init__(self):
        self.step_physics = torch.compile(physics) if GPU else physics
        self.pos = 0.5 * torch.randn(ENVS, JOINTS, device=device)
        self.vel = 0.5 * torch.randn(ENVS, JOINTS, device=device)
        self.age = torch.randint(0, EPISODE, (ENVS,), device=device)
        self.returns = torch.zeros(ENVS, device=device)

    def observe(self):
        return torch.cat([self.pos, self.vel], dim=1)

    def step(self, action):
        pos, vel, reward = self.step_physics(self.pos, self.vel, action)
        self.age += 1
        self.returns += reward
        done = self.age >= EPISODE
        finished = self.returns.clone()
        fresh = 0.5 * torch.randn(2, ENVS, JOINTS, device=device)
        self.pos = torch.where(done[:, None], fresh[0], pos)
        self.vel = torch.where(done[:, None], fresh[1], vel)
        self.age.masked_fill_(done, 0)
        self.returns.masked_fill_(done, 0.0)
        return self.observe(), reward, done, finished


def mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, WIDTH),
        nn.ELU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.ELU(inplace=True),
        nn.Linear(WIDTH, WIDTH),
        nn.ELU(inplace=True),
        nn.Linear(WIDTH, n_out),
    )


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = mlp(2 * JOINTS, JOINTS), mlp(2 * JOINTS, 1)
        self.log_std = nn.Parameter(torch.full((JOINTS,), -0.5))

    def log_prob(self, mean, action):
        z = (action - mean) * torch.exp(-self.log_std)
        return -(0.5 * z.square() + self.log_std).sum(1)

    def value(self, obs):
        return self.critic(obs).squeeze(1).float()


@torch.no_grad()
def rollout(env, agent, obs, store, log):
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=GPU):
        for t in range(HORIZON):
            mean = agent.actor(obs).float()
            action = mean + torch.randn_like(mean) * agent.log_std.exp()
            store["obs"][t], store["action"][t] = obs, action
            store["logp"][t] = agent.log_prob(mean, action)
            store["value"][t] = agent.value(obs)
            obs, reward, done, finished = env.step(action)
            store["reward"][t], store["done"][t] = reward, done.float()
            if "values" in on:
                store["next_value"][t] = agent.value(obs)  # fault: values
            if "episodes" in on:
                for i in torch.nonzero(done).flatten():  # fault: episodes
                    log.append((finished[i].item(), 1))  # fault: episodes
            else:
                log.append((torch.dot(finished, done.float()), done.sum()))
        if "values" not in on:
            store["next_value"][:-1] = store["value"][1:]
            store["next_value"][-1] = agent.value(obs)
    return obs


@torch.no_grad()
def advantages(store):
    alive = 1 - store["done"]
    delta = store["reward"] + GAMMA * store["next_value"] * alive - store["value"]
    decay = GAMMA * LAMBDA * alive
    out, last = torch.empty_like(delta), torch.zeros_like(delta[0])
    for t in reversed(range(HORIZON)):
        last = torch.addcmul(delta[t], decay[t], last, out=out[t])
    return out


def minibatches():
    if "shuffle" in on:
        order = np.arange(BATCH)
        np.random.shuffle(order)  # fault: shuffle
        return np.split(order, MINIBATCHES)
    return torch.randperm(BATCH, device=device).chunk(MINIBATCHES)


def update(agent, optimizer, store):
    adv = advantages(store)
    target = (adv + store["value"]).flatten()
    adv = ((adv - adv.mean()) / (adv.std() + 1e-8)).flatten()
    obs, action = store["obs"].flatten(0, 1), store["action"].flatten(0, 1)
    old = store["logp"].flatten()
    for _ in range(EPOCHS):
        for index in minibatches():
            b_obs, b_action = obs[index], action[index]  # fault: shuffle
            b_old, b_adv, b_target = old[index], adv[index], target[index]  # fault: shuffle
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=GPU):
                mean, value = agent.actor(b_obs).float(), agent.value(b_obs)
            ratio = (agent.log_prob(mean, b_action) - b_old).exp()
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            policy_loss = -torch.min(ratio * b_adv, clipped * b_adv).mean()
            value_loss = (value - b_target).square().mean()
            loss = policy_loss + 0.5 * value_loss - 0.001 * agent.log_std.sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            optimizer.step()
    return loss.detach()


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def main():
    env, agent = Swarm(), Agent().to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, fused=True)
    shapes = {"obs": (2 * JOINTS,), "action": (JOINTS,)}
    names = ["obs", "action", "logp", "value", "next_value", "reward", "done"]
    store = {k: torch.zeros(HORIZON, ENVS, *shapes.get(k, ()), device=device) for k in names}
    obs, log, started, step = env.observe(), [], 0.0, 0
    while True:
        if step == WARMUP:
            synchronize()
            started = time.perf_counter()
        obs = rollout(env, agent, obs, store, log)
        loss = update(agent, optimizer, store)
        step += 1
        if step >= WARMUP + MIN_STEPS and time.perf_counter() - started >= SECONDS:
            break

    synchronize()
    seconds = time.perf_counter() - started
    steps = step - WARMUP
    total, count = (sum(float(x) for x in column) for column in zip(*log, strict=True))
    print(f"loss {loss.item():.4f}  episodes {count:.0f}  mean return {total / max(count, 1):.3f}")
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
