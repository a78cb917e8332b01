"""`stepscope record` with real scripts: what it records of them, and that they notice nothing.

Each script checks several things at once, since torch takes more than a second to import.
"""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stepscope
from programs import running
from waiting import LONG_SECONDS

pytestmark = pytest.mark.recording
OURS = re.compile(r"^stepscope: (.*)$", re.MULTILINE)
SHORT = ("--log-dir", "log", "--skip", "3", "--warmup", "1", "--active", "4")

MODEL = """
import torch

def model():
    torch.manual_seed(1)
    return torch.nn.Linear(8, 8)

def loader(batches, **options):
    data = torch.utils.data.TensorDataset(torch.ones(batches * 2, 8))
    return torch.utils.data.DataLoader(data, batch_size=2, **options)
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stepscope", "record", *SHORT, *arguments]


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_SECONDS,
    )


def said(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """What we said, without the files' names."""
    return [re.sub(r": log\S* \(.*\)$", "", line) for line in OURS.findall(done.stderr)]


def documents(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "log").iterdir())
    return [json.loads(gzip.decompress(path.read_bytes())) for path in paths]


def steps(document: dict[str, Any]) -> list[str]:
    names = [event.get("name", "") for event in document["traceEvents"]]
    return [name for name in names if re.match("(ProfilerStep|Cut-off step)#", name)]


def count(document: dict[str, Any], name: str) -> int:
    return sum(event.get("name") == name for event in document["traceEvents"])


TRAIN = """
import argparse, json, os, sys
from . import FACT
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
options = parser.parse_args()
print(json.dumps([FACT, sys.argv, sys.path, __name__, __file__, __spec__.name, vars(options)]))
if os.environ.get("ONLY_FACTS"):
    sys.exit(5)
import torch
from .model import loader, model

def evaluate(net, data):
    net.eval()
    with torch.no_grad():
        for (batch,) in data:
            net(batch).relu()
    net.train()

def main():
    net, training, evaluation = model(), loader(9), loader(30)
    evaluate(net, evaluation)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(options.epochs):
        for (batch,) in training:
            sgd.zero_grad()
            net(batch).sum().backward()
            sgd.step()
        evaluate(net, evaluation)
    print(round(net.weight.sum().item(), 4))

if __name__ == "__main__":
    main()
    sys.exit(5)
"""


SHORT_EPOCHS = """
import sys
from model import loader, model
import torch
net = model()
optimizer = torch.optim.SGD(net.parameters())
for _ in range(int(sys.argv[1])):
    for batch, in loader(6):
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
"""


def run_by_default(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stepscope", "record", "--log-dir", "log", "--", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG_SECONDS,
    )


@pytest.mark.parametrize(
    ("epochs", "count"), [(10, 8), pytest.param(4, 5, marks=pytest.mark.every)]
)
def test_of_short_epochs_a_later_one_is_recorded_before_which_steps_were_measured(
    tmp_path: Path, epochs: int, count: int
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(SHORT_EPOCHS)
    run_by_default(tmp_path, sys.executable, "train.py", str(epochs))
    (document,) = documents(tmp_path)
    whole = [name for name in steps(document) if name.startswith("ProfilerStep#")]
    assert len(whole) == count
    assert document["stepscope_recorder"]["unrecorded_steps"]["count"] >= 3


FEW = """
import sys
from model import model
import torch
net = model()
optimizer = torch.optim.SGD(net.parameters())
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    net(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("count", "names"),
    [
        ("4", ["ProfilerStep#2", "ProfilerStep#3", "Cut-off step#4"]),
        ("5", ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]),
    ],
)
def test_a_script_of_few_steps_is_recorded(tmp_path: Path, count: str, names: list[str]) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "few.py").write_text(FEW)
    done = run_by_default(tmp_path, sys.executable, "few.py", count)
    cut = ", and was then cut short" if count == "4" else ""
    assert said(done) == [
        f"recorded steps 2 to {3 if cut else 4} (a step is one step of the optimizer SGD){cut}, in "
        "case the script ends soon",
        "1 trace of 1 process in log",
        "to see what to change: stepscope advise log",
    ]
    (document,) = documents(tmp_path)
    assert steps(document) == names
    (worker,) = stepscope.advise(stepscope.load(tmp_path / "log")).report.workers
    assert worker.step.count == (2 if cut else 3)


def test_a_longer_script_leaves_its_last_trace_only(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "few.py").write_text(FEW)
    done = run_by_default(tmp_path, sys.executable, "few.py", "90")
    *early, recording, recorded, _, _ = said(done)
    assert all(line.endswith(", in case the script ends soon") for line in early)
    assert 2 <= len(early) <= 3
    assert recording.endswith(" (a step is one step of the optimizer SGD)")
    assert recording.startswith(recorded.replace("recorded", "recording"))
    (document,) = documents(tmp_path)
    assert len(steps(document)) == 8
    assert document["stepscope_recorder"]["unrecorded_steps"]["count"] >= 3


def test_a_training_is_recorded_between_its_evaluations(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("FACT = 'relative'\n")
    (package / "model.py").write_text(MODEL)
    (package / "train.py").write_text(TRAIN)
    script = [sys.executable, "-m", "package.train", "--epochs", "3"]
    alone = subprocess.run(
        script,
        cwd=tmp_path,
        env={**os.environ, "ONLY_FACTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    done = run(tmp_path, "--active", "5", "--", *script)
    assert done.returncode == alone.returncode == 5
    facts, weight = done.stdout.splitlines()
    assert [facts] == alone.stdout.splitlines()
    assert float(weight) < 0
    assert said(done) == [
        "recording steps 5 to 9 (a step is one batch of a DataLoader)",
        "recorded steps 5 to 9",
        "the optimizer stepped: traces of earlier batches or calls are removed",
        "recording steps 5 to 9 (a step is one step of the optimizer SGD)",
        "recorded steps 5 to 8, and was then cut short",
        "1 trace of 1 process in log",
        "to see what to change: stepscope advise log",
    ]
    (document,) = documents(tmp_path)
    assert steps(document) == [*(f"ProfilerStep#{n}" for n in range(5, 9)), "Cut-off step#9"]
    assert count(document, "aten::relu") == 0
    assert count(document, "Optimizer.step#SGD.step") == 4
    (loading,) = document["stepscope_recorder"]["settings"]["dataloaders"][:1]
    assert loading["batch_size"] == 2
    advice = stepscope.advise(stepscope.load(tmp_path / "log"))
    (worker,) = advice.report.workers
    assert worker.step.count == 4


PLAIN = """
import torch
net = torch.nn.Linear(8, 8)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(20):
    sgd.zero_grad()
    net(torch.ones(2, 8)).sum().backward()
    sgd.step()
"""


def test_skipped_steps_are_measured_without_the_profiler(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    run(tmp_path, "--skip", "11", "--", sys.executable, "train.py")
    (worker,) = stepscope.advise(stepscope.load(tmp_path / "log")).report.workers
    unrecorded = worker.step.unrecorded
    assert unrecorded is not None
    assert 4 <= unrecorded.count <= 8, "11 without the first, two that are read, and slow ones"
    assert worker.verdict.startswith("Recorded steps take ")
    flags = {missing.flag for missing in worker.record_next}
    assert flags.isdisjoint({"unrecorded-steps", "waiting-steps"})


GAN = """
import os, torch, warnings
from model import model
generator, discriminator = model(), model()
adam = torch.optim.Adam(generator.parameters())
sgd = torch.optim.SGD(discriminator.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(30):
    for _ in range(2):  # critics
        for _ in range(3):  # accumulated
            scaler.scale(discriminator(torch.ones(2, 8)).sum()).backward()
        if step == 4:
            discriminator.weight.grad[0, 0] = float("inf")
        scaler.step(sgd)
        scaler.update()
        sgd.zero_grad()
    if step == 6:
        raise ValueError("of the training")
    discriminator(generator(torch.ones(2, 8))).sum().backward()
    adam.step()
"""


@pytest.mark.slow
def test_a_script_that_raises_keeps_its_error_and_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "gan.py").write_text(GAN)
    done = run(tmp_path, "--", sys.executable, "-W", "error", "gan.py")
    assert done.returncode == 1
    assert "\nValueError: of the training\n" in done.stderr
    assert done.stderr.count("Traceback") == 1
    assert said(done)[:3] == [
        "recording steps 5 to 8 (a step is one step of the optimizer SGD)",
        "recording steps 6 to 9 (a step is one step of the optimizer Adam)",
        "recorded steps 6 to 8, and was then cut short",
    ]
    (document,) = documents(tmp_path)
    assert steps(document) == [*(f"ProfilerStep#{n}" for n in range(6, 9)), "Cut-off step#9"]
    # Three whole iterations of both optimizers, of which the scaler left out two critics' steps.
    assert count(document, "Optimizer.step#Adam.step") == 3
    assert count(document, "Optimizer.step#SGD.step") == 2 * 4 - 2


ENDLESS = """
import sys, time, torch
from model import model
net = model()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(10_000):
        net(torch.ones(2, 8)).sum().backward()
        sgd.step()
        if step == 8:
            print("ready", flush=True)
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


@pytest.fixture
def _heard() -> Iterator[None]:
    """What runs tests in the background has Ctrl-C ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize(
    ("number", "status", "told"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_a_script_that_is_ended_by_a_signal_keeps_what_was_recorded(
    tmp_path: Path, number: signal.Signals, status: int, told: str
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "endless.py").write_text(ENDLESS)
    with running(
        command("--active", "9000", "--", "endless.py"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=LONG_SECONDS)
    assert (process.returncode, out) == (status, told)
    assert ", and was then cut short: log/" in err
    (document,) = documents(tmp_path)
    *whole, last = steps(document)
    assert len(whole) >= 3
    assert whole[0] == "ProfilerStep#5"
    assert last == f"Cut-off step#{5 + len(whole)}"


INFER = """
import torch
from model import loader, model

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        # Not a thing of the training: a worker that uses torch, and an optimizer at that.
        weight = torch.nn.Parameter(torch.ones(8))
        torch.optim.SGD([weight], lr=0.1).step()
        return weight.detach()

if __name__ == "__main__":
    net = model().eval()
    data = torch.utils.data.DataLoader(
        Data(), batch_size=2, num_workers=1, multiprocessing_context="spawn"
    )
    with torch.inference_mode():
        for batch in data:
            net(batch).relu()
    print("to the end")
"""


@pytest.mark.slow
def test_an_inference_is_recorded_by_its_batches_and_workers_are_not(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "infer.py").write_text(INFER)
    done = run(tmp_path, "--", sys.executable, "infer.py")
    assert (done.returncode, done.stdout) == (0, "to the end\n")
    assert said(done)[:2] == [
        "recording steps 5 to 8 (a step is one batch of a DataLoader)",
        "recorded steps 5 to 8",
    ]
    (document,) = documents(tmp_path)
    assert steps(document) == [f"ProfilerStep#{n}" for n in range(5, 9)]
    assert count(document, "aten::relu") == 4
    fetch = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert count(document, fetch) == 4


RANKS = """
import torch, torch.distributed as group
from model import model
group.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(model())
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(1000):
    net(torch.ones(2, 8)).sum().backward()
    sgd.step()
print("never")
"""


@pytest.mark.slow
def test_each_rank_of_torchrun_is_a_worker_and_stop_ends_all(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(RANKS)
    (tmp_path / "launch.sh").write_text(
        f'exec "{sys.executable}" -m torch.distributed.run --nproc-per-node 2 --standalone "$@"'
    )
    done = run(tmp_path, "--stop", "--", "sh", "launch.sh", "train.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(said(done)) == [
        "2 traces of 2 processes in log",
        "recorded steps 5 to 8 of rank 0",
        "recorded steps 5 to 8 of rank 1",
        "recording steps 5 to 8 of rank 0 (a step is one step of the optimizer SGD)",
        "to see what to change: stepscope advise log",
    ]
    found = [
        document["stepscope_recorder"]["settings"]["distributed"]
        for document in documents(tmp_path)
    ]
    assert [each["rank"] for each in found] == [0, 1]


OWN = """
import torch
from model import model
net = model()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        net(torch.ones(2, 8)).sum().backward()
        sgd.step()
train(6)
with torch.autograd.profiler.profile(enabled=False):
    train(1)
with torch.profiler.profile() as own:
    train(3)
train(20)
print(sum(event.name == "Optimizer.step#SGD.step" for event in own.events()))
"""


@pytest.mark.slow
def test_a_profiler_of_the_script_goes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "own.py").write_text(OWN)
    done = run(tmp_path, "--", sys.executable, "own.py")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert said(done)[1:3] == [
        "recorded steps 5 to 6, and was then cut short",
        "the script uses its own torch profiler: stepscope stops recording",
    ]
    (document,) = documents(tmp_path)
    assert steps(document) == ["ProfilerStep#5", "ProfilerStep#6", "Cut-off step#7"]


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_leaves_the_training_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "own.py").write_text(OWN.replace("train(6)", "train(12)"))
    (tmp_path / "log").write_text("a file where the folder should be")
    done = run(tmp_path, "--", sys.executable, "own.py")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "a trace could not be saved" in said(done)
    assert "nothing was recorded; see the reason above" in said(done)
    assert "Traceback" not in done.stderr


WHOLE = """
import torch
from model import model
net = model().eval()
for _ in range(3):
    net(torch.ones(2, 8))
"""


def test_a_script_without_steps_is_recorded_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "whole.py").write_text(WHOLE)
    done = run(tmp_path, "--advise", "--", sys.executable, "whole.py")
    assert said(done)[0] == "recorded the whole run, without steps"
    assert done.returncode == 0
    assert "log ──" in done.stdout
    (document,) = documents(tmp_path)
    assert (steps(document), count(document, "aten::linear")) == ([], 3)
    assert document["stepscope_recorder"]["whole_run"] == {"model_calls": 3}


WITHOUT_STEPS = """
import time
import torch

begin = time.monotonic()
while time.monotonic() < begin + 4.5:
    torch.ones(2).relu()
    time.sleep(0.01)
while time.monotonic() < begin + 15:
    torch.ones(2).tanh()
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_without_steps_later_seconds_replace_those_of_the_start(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text(WITHOUT_STEPS)
    done = run(tmp_path, "--seconds", "1", "--", sys.executable, "whole.py")
    assert re.fullmatch(
        r"recorded the run from \d+ s after the import of torch, without steps", said(done)[0]
    )
    (document,) = documents(tmp_path)
    assert count(document, "aten::relu") == 0
    assert count(document, "aten::tanh") > 3


SLOW_LINE = """
import time
import torch

parameter = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([parameter], lr=0.1)

def slow_line():
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end:
        pass

for _ in range(40):
    parameter.sum().backward()
    slow_line()
    optimizer.step()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs timers of one thread")
def test_samples_of_unrecorded_steps_name_the_line_unless_they_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SLOW_LINE)
    run(tmp_path, "--skip", "25", "--", sys.executable, "train.py")
    [document] = documents(tmp_path)
    samples = document["stepscope_recorder"]["host_samples"]
    assert samples["step_count"] == document["stepscope_recorder"]["unrecorded_steps"]["count"]
    longest = samples["stacks"][0]
    assert samples["frames"][longest[-1]].startswith("train.py(")
    assert samples["frames"][longest[-1]].endswith("): slow_line")
    run(
        tmp_path,
        "--log-dir",
        "none",
        "--skip",
        "25",
        "--no-samples",
        "--",
        sys.executable,
        "train.py",
    )
    [path] = (tmp_path / "none").iterdir()
    recorder = json.loads(gzip.decompress(path.read_bytes()))["stepscope_recorder"]
    assert "host_samples" not in recorder
    assert recorder["unrecorded_steps"]["count"] > 5


SLOW_WORKERS = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.03)
        return torch.zeros(1)

parameter = torch.nn.Parameter(torch.zeros(4))
optimizer = torch.optim.SGD([parameter], lr=0.1)
for _ in DataLoader(Slow(), num_workers=1, multiprocessing_context="fork"):
    parameter.sum().backward()
    optimizer.step()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs timers of one thread")
def test_samples_name_the_line_of_workers(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SLOW_WORKERS)
    run(tmp_path, "--skip", "60", "--", sys.executable, "train.py")
    [document] = documents(tmp_path)
    samples = document["stepscope_recorder"]["worker_samples"]
    assert samples["process_count"] == 1
    longest = samples["stacks"][0]
    assert samples["frames"][longest[-1]] == "train.py(11): __getitem__"
    assert longest[1] > 0.8 * samples["time_ns"]


CALLS = """
import json, threading, time
import torch
from model import model

net = model().eval()
drop = torch.nn.Dropout()

def text(number):
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end:
        json.dumps([number])

def serve():
    for number in range(2000):
        text(number)
        with torch.inference_mode():
            drop(net(torch.ones(2, 8)))

{run}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "run_serve", ["serve()", "thread = threading.Thread(target=serve)\nthread.start()"]
)
def test_calls_of_a_model_are_the_steps_of_an_inference(tmp_path: Path, run_serve: str) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "calls.py").write_text(CALLS.format(run=run_serve))
    done = run(tmp_path, "--skip", "40", "--active", "5", "--", sys.executable, "calls.py")
    first, *_, last, _, _ = said(done)
    assert first.endswith(" (a step is one call of the model Linear)")
    assert first.startswith("recording steps 42 to ")
    assert last.startswith("recorded steps ")
    [document] = documents(tmp_path)
    assert len(steps(document)) == count(document, "aten::linear") >= 3
    if "thread" not in run_serve:  # on a busy machine another thread seems to wait for requests
        assert last == f"recorded steps {first[len('recording steps ') : first.index(' (')]}"
        assert count(document, "aten::linear") >= 5
    recorder = document["stepscope_recorder"]
    assert recorder["unrecorded_steps"]["count"] > 10
    assert "whole_run" not in recorder
    if "thread" not in run_serve and sys.platform.startswith("linux"):
        assert any(name.endswith("): text") for name in recorder["host_samples"]["frames"])


@pytest.mark.slow
def test_a_script_that_ends_before_its_calls_are_recorded_leaves_the_first_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "calls.py").write_text(CALLS.format(run="serve()").replace("2000", "200"))
    done = run(tmp_path, "--skip", "500", "--advise", "--", sys.executable, "calls.py")
    assert said(done)[0] == "recorded the whole run, without steps, and was then cut short"
    [document] = documents(tmp_path)
    calls = document["stepscope_recorder"]["whole_run"]["model_calls"]
    assert calls == 3
    assert count(document, "aten::linear") == calls
    assert "calls of a model" in done.stdout
    assert "weak-step-coverage" not in done.stdout.partition("Not applicable")[0]


SERVER = """
import queue, threading, time
import torch

requests, answers = queue.Queue(), queue.Queue()

def serve():
    net = torch.nn.Linear(8, 8).eval()
    while (request := requests.get()) is not None:
        with torch.inference_mode():
            answers.put(net(request))

torch.nn.Linear(1, 1).eval()
thread = threading.Thread(target=serve)
thread.start()
for _ in range(20):
    requests.put(torch.ones(2, 8))
    answers.get()
requests.put(None)
thread.join()
"""


def test_a_server_that_computes_in_another_thread_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    run(tmp_path, "--", sys.executable, "server.py")
    [document] = documents(tmp_path)
    whole = [name for name in steps(document) if name.startswith("ProfilerStep#")]
    assert len(whole) >= 3
    assert count(document, "aten::linear") >= len(whole)
    assert count(document, "aten::ones") >= len(whole), "the main thread is recorded, too"


def test_a_server_that_called_its_model_before_it_serves_is_recorded_as_it_serves(
    tmp_path: Path,
) -> None:
    warm_up = SERVER.replace(
        "torch.nn.Linear(1, 1).eval()\n",
        "first = torch.nn.Linear(1, 1).eval()\nfor _ in range(6):\n    first(torch.ones(1, 1))\n",
    )
    (tmp_path / "server.py").write_text(warm_up.replace("range(20)", "range(400)"))
    run_by_default(tmp_path, sys.executable, "server.py")
    [document] = documents(tmp_path)
    whole = [name for name in steps(document) if name.startswith("ProfilerStep#")]
    assert len(whole) >= 3
    inputs = {
        str(event["args"]["Input Dims"][0])
        for event in document["traceEvents"]
        if event.get("name") == "aten::linear"
    }
    assert inputs == {"[2, 8]"}


WAITING = """
import threading, time
import torch

class Net(torch.nn.Linear):
    def eval(self):    # transformers has one of its own
        return self.train(False)

def serve():
    net = Net(8, 8)
    if {evaluates}:
        net.eval()
    with torch.inference_mode():
        for _ in range({rounds}):
            net(torch.ones(2, 8))
            time.sleep(0.5)

if {evaluates}:
    Net(8, 8).eval()
thread = threading.Thread(target=serve)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("evaluates", [True, pytest.param(False, marks=pytest.mark.every)])
def test_a_server_is_recorded_while_the_main_thread_waits_for_it(
    tmp_path: Path, *, evaluates: bool
) -> None:
    script = WAITING.format(evaluates=evaluates, rounds=9 if evaluates else 20)
    (tmp_path / "waiting.py").write_text(script)
    run(tmp_path, "--", sys.executable, "waiting.py")
    [document] = documents(tmp_path)
    least = 9 if evaluates else 2
    assert count(document, "aten::linear") >= least, "10 s, of which more than 3 are the start"


SCORING = """
import torch
model = torch.nn.Linear(64, 64)
with torch.no_grad():
    for _ in range(8):
        model(torch.zeros(8, 64))
"""


def test_calls_of_a_short_inference_that_never_calls_eval_are_steps(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(SCORING)
    run_by_default(tmp_path, sys.executable, "score.py")
    (document,) = documents(tmp_path)
    assert steps(document) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert count(document, "aten::linear") == 3


DECODER = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(32, 16), nn.ModuleList(map(nn.Linear, [16], [32]))
        self.cache = []

    def forward(self, token):
        self.cache.append(self.embed(token))
        return self.layers[0](torch.stack(self.cache).mean(0))

class Reward(nn.Module):
    def forward(self, logits):
        return logits.softmax(-1).max()

def generate(model, reward, length):
    token = torch.zeros(2, dtype=torch.long)
    for _ in range(length):
        logits = model(token)
        reward(logits)
        token = logits.argmax(-1)

generate(Decoder(), Reward(), 40)
"""


def test_each_token_of_a_decoding_loop_is_a_step(tmp_path: Path) -> None:
    (tmp_path / "generate.py").write_text(DECODER)
    done = run_by_default(tmp_path, sys.executable, "generate.py")
    assert "without steps" not in done.stderr
    (document,) = documents(tmp_path)
    whole = [name for name in steps(document) if name.startswith("ProfilerStep#")]
    assert len(whole) >= 5
    assert count(document, "aten::embedding") in (len(whole), len(whole) + 1)
    assert document["stepscope_recorder"]["unrecorded_steps"]["count"] >= 3


OVERDUE = """
import time, torch
from stepscope.recording import cycles
cycles.OVERDUE_SECONDS = 0.3
net = torch.nn.Linear(8, 8)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)

def train(steps):
    for _ in range(steps):
        net(torch.ones(2, 8)).sum().backward()
        sgd.step()

def is_recording():
    return torch._C._autograd._profiler_enabled()

train(7)
assert is_recording()
end = time.monotonic() + 60
while is_recording() and time.monotonic() < end:
    torch.ones(1).sum()
print(is_recording(), flush=True)
train(20)
print("after", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [(), pytest.param(("--stop",), marks=pytest.mark.every)])
def test_the_last_cycle_ends_if_steps_do_not(tmp_path: Path, stop: tuple[str, ...]) -> None:
    (tmp_path / "train.py").write_text(OVERDUE)
    done = run(tmp_path, *stop, "--", sys.executable, "train.py")
    assert done.stdout == ("False\n" if stop else "False\nafter\n")
    assert "recorded steps 5 to 6, and was then cut short" in done.stderr
    (document,) = documents(tmp_path)
    assert steps(document) == ["ProfilerStep#5", "ProfilerStep#6", "Cut-off step#7"]


MOVING = """
import threading, time, torch
from stepscope.recording import inference_steps
inference_steps.LEAST_PAUSE_NS = 10**12  # on a busy machine a thread pauses anywhere
net = torch.nn.Linear(8, 8).eval()

def serve(calls):
    for _ in range(calls):
        with torch.no_grad():
            net(torch.ones(2, 8))
        time.sleep(0.005)

for calls in (30, 100):
    thread = threading.Thread(target=serve, args=(calls,))
    thread.start()
    thread.join()
"""


@pytest.mark.slow
def test_a_cycle_ends_if_another_thread_takes_over_its_calls(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(MOVING)
    done = run(tmp_path, "--", sys.executable, "serve.py")
    assert re.search(r"recorded steps 5 to \d+, and was then cut short", done.stderr), done.stderr
    (document,) = documents(tmp_path)
    assert 45 <= count(document, "aten::linear") <= 80, "the second thread's calls end it"


@pytest.mark.slow
def test_a_script_of_one_step_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OVERDUE.partition("train(7)")[0] + "train(1)")
    done = run(tmp_path, "--", sys.executable, "train.py")
    assert "the script ended in its first step after the start (a step is one step" in done.stderr
    done = run(tmp_path, "--steps-from", "none", "--", sys.executable, "train.py")
    assert "recorded the whole run, without steps" in done.stderr
    (document,) = documents(tmp_path)
    assert count(document, "aten::linear") == 1
