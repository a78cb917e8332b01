"""Backward passes of torch: which of them go through a graph more often than needed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.rules.repeated_backward import Options, check

pytestmark = pytest.mark.recording


class Job:
    """A network with two losses, and what a step does with them."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        layers = [torch.nn.Linear(256, 256) for _ in range(4)]
        self.network = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-4)
        self.inputs = torch.randn(256, 256, requires_grad=True)

    def losses(self, outputs: Any) -> tuple[Any, Any]:
        return outputs.square().mean(), outputs.abs().mean()


def sum_of_losses(job: Job) -> None:
    first, second = job.losses(job.network(job.inputs))
    (first + second).backward()
    job.optimizer.step()


def loss_by_loss(job: Job) -> None:
    first, second = job.losses(job.network(job.inputs))
    first.backward(retain_graph=True)
    second.backward()
    job.optimizer.step()


def loss_by_loss_with_checkpoints(job: Job) -> None:
    outputs = job.network(job.inputs)
    recomputed = job.torch.utils.checkpoint.checkpoint(
        job.network[0], job.inputs, use_reentrant=False
    )
    first, second = job.losses(outputs + recomputed)
    first.backward(retain_graph=True)
    second.backward()
    job.optimizer.step()


def gradient_penalty(job: Job) -> None:
    loss, _ = job.losses(job.network(job.inputs))
    (gradient,) = job.torch.autograd.grad(loss, job.inputs, create_graph=True)
    (loss + gradient.square().sum()).backward()
    job.optimizer.step()


def an_update_between(job: Job) -> None:
    shift = job.torch.ones(1, requires_grad=True)
    first, second = job.losses(job.network(job.inputs) + shift)
    first.backward(retain_graph=True)
    job.torch.optim.SGD([shift], lr=1e-4).step()
    second.backward()


@pytest.mark.parametrize(
    ("step", "is_found"),
    [
        (sum_of_losses, False),
        (loss_by_loss, True),
        (loss_by_loss_with_checkpoints, True),
        (gradient_penalty, False),
        (an_update_between, False),
    ],
)
def test_a_loss_by_loss_backward_pass_is_found_and_a_needed_one_is_not(
    tmp_path: Path, step: Callable[[Job], None], *, is_found: bool
) -> None:
    torch = pytest.importorskip("torch")
    job = Job(torch)
    path = str(tmp_path / "trace.json")
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda recording: recording.export_chrome_trace(path),
    ) as recording:
        for _ in range(4):
            step(job)
            recording.step()
    findings = list(check(trace_at(Path(path)), Options()))
    assert len(findings) == is_found
