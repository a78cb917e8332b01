"""PPO on point masses that must reach a target, in one file, after CleanRL."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn

FAULTS = {
    "one_env_at_a_time": "the policy called with a batch of one for each environment",
    "advantage_loop": "advantages computed by a loop over times and environments on tensor elements",
    "optimizer_per_layer": "an optimizer per layer, which updates tensor by tensor",
}
on = set(sys.argv[1:])

num_envs, num_steps = 12, 24
update_epochs, num_minibatches = 2, 2
gamma, gae_lambda, clip_coef, ent_coef, vf_coef = 0.98, 0.95, 0.2, 0.01, 0.5
warmup, iterations = 4, 80


class PointMasses:
    """Masses in a plane; actions push left, right, up, down or not at all."""

    push = np.array([[-1, 0], [1, 0], [0, 1], [0, -1], [0, 0]], dtype=np.float32)

    def __init__(self, n, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.normal(size=(n, 6)).astype(np.float32)

    def observe(self):
        return torch.from_numpy(self.state.copy())

    def step(self, actions):
        s = self.state
        s[:, 2:4] = 0.9 * s[:, 2:4] + 0.1 * self.push[actions]
        s[:, :2] += s[:, 2:4]
        distance = np.linalg.norm(s[:, :2] - s[:, 4:], axis=1)
        done = (distance < 0.15) | (distance > 6)
        reward = np.where(distance < 0.15, 5.0, -0.1 * distance)
        s[done] = self.rng.normal(size=(done.sum(), 6))
        return reward.astype(np.float32), done.astype(np.float32)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()
        )
        self.actor = nn.Linear(64, 5)
        self.critic = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return torch.log_softmax(self.actor(h), dim=-1), self.critic(h).squeeze(-1)


torch.manual_seed(0)
envs = PointMasses(num_envs)
agent = Agent()
if "optimizer_per_layer" in on:
    layers = [m for m in agent.modules() if isinstance(m, nn.Linear)]
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-3, foreach=False) for m in layers]
else:
    optimizers = [torch.optim.Adam(agent.parameters(), lr=1e-3, fused=True)]

obs = torch.zeros(num_steps, num_envs, 6)
actions = torch.zeros(num_steps, num_envs, dtype=torch.long)
logprobs = torch.zeros(num_steps, num_envs)
values = torch.zeros(num_steps + 1, num_envs)
rewards = torch.zeros(num_steps, num_envs)
dones = torch.zeros(num_steps, num_envs)

for iteration in range(warmup + iterations):
    if iteration == warmup:
        start_time = time.perf_counter()

    # rollout
    with torch.no_grad():
        for t in range(num_steps):
            obs[t] = envs.observe()
            if "one_env_at_a_time" in on:
                outputs = []
                for e in range(num_envs):
                    outputs.append(agent(obs[t, e : e + 1]))  # fault: one_env_at_a_time
                logp = torch.cat([o[0] for o in outputs])
                values[t] = torch.cat([o[1] for o in outputs])
            else:
                logp, values[t] = agent(obs[t])
            actions[t] = torch.multinomial(logp.exp(), 1).squeeze(1)
            logprobs[t] = logp.gather(1, actions[t].unsqueeze(1)).squeeze(1)
            reward, done = envs.step(actions[t].numpy())
            rewards[t], dones[t] = torch.from_numpy(reward), torch.from_numpy(done)
        values[num_steps] = agent(envs.observe())[1]

    # generalized advantage estimation
    if "advantage_loop" in on:
        advantages = torch.zeros(num_steps, num_envs)
        for e in range(num_envs):
            last = torch.tensor(0.0)
            for t in reversed(range(num_steps)):
                alive = 1.0 - dones[t, e]  # fault: advantage_loop
                target = rewards[t, e] + gamma * values[t + 1, e] * alive  # fault: advantage_loop
                delta = target - values[t, e]  # fault: advantage_loop
                last = delta + gamma * gae_lambda * alive * last  # fault: advantage_loop
                advantages[t, e] = last  # fault: advantage_loop
    else:
        r, v, alive = rewards.numpy(), values.numpy(), 1 - dones.numpy()
        delta = r + gamma * v[1:] * alive - v[:-1]
        adv = np.zeros((num_steps + 1, num_envs), dtype=np.float32)
        for t in reversed(range(num_steps)):
            adv[t] = delta[t] + gamma * gae_lambda * alive[t] * adv[t + 1]
        advantages = torch.from_numpy(adv[:-1])
    returns = (advantages + values[:-1]).flatten()
    b_obs, b_actions, b_logprobs = obs.flatten(0, 1), actions.flatten(), logprobs.flatten()
    b_advantages = (advantages.flatten() - advantages.mean()) / (advantages.std() + 1e-8)

    # update
    for _ in range(update_epochs):
        for idx in torch.randperm(num_envs * num_steps).chunk(num_minibatches):
            logp, value = agent(b_obs[idx])
            ratio = (logp.gather(1, b_actions[idx].unsqueeze(1)).squeeze(1) - b_logprobs[idx]).exp()
            a = b_advantages[idx]
            pg_loss = torch.max(-a * ratio, -a * ratio.clamp(1 - clip_coef, 1 + clip_coef)).mean()
            v_loss = 0.5 * (value - returns[idx]).square().mean()
            entropy = -(logp.exp() * logp).sum(1).mean()
            loss = pg_loss - ent_coef * entropy + vf_coef * v_loss
            agent.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()  # fault: optimizer_per_layer

seconds = time.perf_counter() - start_time
print(f"loss {loss.item():.4f} mean reward {rewards.mean().item():.4f}")
print(f"steps={iterations} seconds={seconds:.3f} samples={iterations * num_steps * num_envs}")
