"""A network learns to drive cars out of a valley, from a buffer of past steps."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import math
import random
from collections.abc import Set

import torch
from torch import Tensor, nn
from torch.nn import functional

from pairs.job import Fault, Steps

FAULTS = {
    "one_environment_a_call": Fault("model-called-per-sample", kind="loop over environments"),
    "sampled_in_loop": Fault("python-loop-indexing"),
    "anomaly": Fault("debug-mode-on"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
}
PAIRS = (
    ("one_environment_a_call",),
    ("sampled_in_loop",),
    ("anomaly",),
    ("sampled_in_loop", "one_by_one"),
    ("one_environment_a_call", "sampled_in_loop", "anomaly"),
)
SEED = 20_306
ENVIRONMENTS = 48
UPDATES = 2
BATCH = 256
CAPACITY = 20_000
ACTIONS = 3
HIDDEN = 256
DISCOUNT, RANDOM_ACTIONS = 0.99, 0.1
TARGET_EVERY = 50
FASTEST, GOAL = 0.07, 0.5
DICE = random.Random(SEED)  # noqa: S311 (no secrets)


class Car:
    """One car, in Python's numbers."""

    def __init__(self) -> None:
        self.state = [DICE.uniform(-0.6, -0.4), 0.0]

    def step(self, action: int) -> tuple[list[float], float, float]:
        """Drives; returns the state, the reward, and 1 at the goal."""
        position, speed = self.state
        gain = 0.001 * (action - 1) - 0.0025 * math.cos(3 * position)
        speed = min(max(speed + gain, -FASTEST), FASTEST)
        position = max(position + speed, -1.2)
        if position < GOAL:
            self.state = [position, speed]
            return self.state, -1.0, 0.0
        self.state = [DICE.uniform(-0.6, -0.4), 0.0]
        return [position, speed], 0.0, 1.0


class Cars:
    """All cars, in tensors."""

    def __init__(self) -> None:
        self.states = self.first_states()

    def first_states(self) -> Tensor:
        """Returns positions in the valley, without speed."""
        positions = torch.empty(ENVIRONMENTS).uniform_(-0.6, -0.4)
        return torch.stack((positions, torch.zeros(ENVIRONMENTS)), dim=1)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Drives; returns the states, the rewards, and 1 at the goal."""
        positions, speeds = self.states.unbind(dim=1)
        speeds = speeds + 0.001 * (actions - 1) - 0.0025 * torch.cos(3 * positions)
        speeds = speeds.clamp(-FASTEST, FASTEST)
        positions = (positions + speeds).clamp(min=-1.2)
        states = torch.stack((positions, speeds), dim=1)
        arrived = positions >= GOAL
        self.states = torch.where(arrived[:, None], self.first_states(), states)
        return states, arrived.float() - 1, arrived.float()


class Buffer:
    """Past steps in tensors, of which the oldest are overwritten."""

    def __init__(self) -> None:
        actions = torch.zeros(CAPACITY, dtype=torch.int64)
        rewards, ends = torch.zeros(2, CAPACITY)
        before, after = torch.zeros(2, CAPACITY, 2)
        self.columns = (before, actions, rewards, after, ends)
        self.count = 0

    def add(self, *step: Tensor) -> None:
        """Adds a step of all environments: a tensor for each column."""
        rows = torch.arange(self.count, self.count + ENVIRONMENTS) % CAPACITY
        for column, values in zip(self.columns, step, strict=True):
            column[rows] = values
        self.count += ENVIRONMENTS

    def sample(self, *, in_loop: bool) -> list[Tensor]:
        """Returns random steps."""
        count = min(self.count, CAPACITY)
        if in_loop:
            rows = DICE.choices(range(count), k=BATCH)
            return [torch.stack([column[row] for row in rows]) for column in self.columns]
        drawn = torch.randint(count, (BATCH,))
        return [column[drawn] for column in self.columns]


def network() -> nn.Sequential:
    """Returns the network that maps states to the values of actions."""
    hidden = [nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, ACTIONS))


@torch.no_grad()
def drive_one_by_one(model: nn.Module, cars: list[Car]) -> tuple[Tensor, ...]:
    """Selects an action for one car after the other, and drives it."""
    rows = []
    for car in cars:
        before = car.state
        action = int(model(torch.tensor([before])).argmax(dim=1))
        if DICE.random() < RANDOM_ACTIONS:
            action = DICE.randrange(ACTIONS)
        rows.append((before, action, *car.step(action)))
    states, actions, after, rewards, ends = map(torch.tensor, zip(*rows, strict=True))
    return states, actions, rewards, after, ends


@torch.no_grad()
def drive(model: nn.Module, cars: Cars) -> tuple[Tensor, ...]:
    """Selects the actions for all cars, and drives them."""
    before = cars.states
    is_random = torch.rand(ENVIRONMENTS) < RANDOM_ACTIONS
    drawn = torch.randint(ACTIONS, (ENVIRONMENTS,))
    actions = torch.where(is_random, drawn, model(before).argmax(dim=1))
    after, rewards, ends = cars.step(actions)
    return before, actions, rewards, after, ends


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    torch.autograd.set_detect_anomaly("anomaly" in faults)
    model, target = network(), network()
    fused = "one_by_one" not in faults
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False, fused=fused)
    car_list, cars = [Car() for _ in range(ENVIRONMENTS)], Cars()
    buffer = Buffer()
    in_loop = "sampled_in_loop" in faults
    number = 0
    while steps.remain:
        if "one_environment_a_call" in faults:
            buffer.add(*drive_one_by_one(model, car_list))
        else:
            buffer.add(*drive(model, cars))
        for _ in range(UPDATES):
            before, actions, rewards, after, ends = buffer.sample(in_loop=in_loop)
            with torch.no_grad():
                future = target(after).amax(dim=1) * (1 - ends)
            values = model(before).gather(1, actions[:, None]).squeeze(1)
            loss = functional.smooth_l1_loss(values, rewards + DISCOUNT * future)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        number += 1
        if number % TARGET_EVERY == 0:
            target.load_state_dict(model.state_dict())
        steps.step()
