"""Records every scenario, each in a separate process: `python all.py [--device cuda]`.

If one fails, the others still run; failures are listed at the end. With names, only those are
recorded. If stepscope is not installed: `PYTHONPATH=plugin python sample_logs/…`.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording import LEFT_OUT, SAMPLE_LOGS, TRACE_PATTERN

SCENARIOS = (
    "dataloader",
    "batch_size",
    "precision",
    "masking",
    "metrics",
    "language_model",
    "ranks",
    "unused_parameters",
    "buckets",
    "optimizer",
    "mixed_precision",
    "compiled",
    "changing_shapes",
    "cifar_resnet18",
    "double_precision",
    "heavy_model",
    "lightning_fetch",
    "hugging_face",
    "cookbook",
    "good_practice",
)
CUDA_ONLY = (
    "pinned_copies",
    "fragmentation",
    "tf32",
    "graph_replay",
    "execution_trace",
    "kernel_counters",
)
HERE = Path(__file__).resolve().parent
# Without it torch warns that memory was allocated before the profiler started.
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
LIMIT_S = 150.0
WHOLE_CUDA_S = 460.0
"""Total time on a GPU, from which on no further scenario starts."""
MOST_BYTES = 2_000_000


def parse_options() -> argparse.Namespace:
    """Reads the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a scenario: its script's name")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=SAMPLE_LOGS, metavar="DIR")
    return parser.parse_args()


def record(scenario: str, options: argparse.Namespace, cache: str, limit_s: float) -> str:
    """Runs one scenario, with compiled code in `cache`; returns its failure, or an empty text.

    It has its own process group, so that its workers and ranks end with it.
    """
    if limit_s <= 0:
        return "left out: no time left"
    script = [sys.executable, str(HERE / f"{scenario}.py")]
    command = [*script, "--device", options.device, "--out", str(options.out)]
    environment = os.environ | QUIET | {"TORCHINDUCTOR_CACHE_DIR": cache}
    # Scripts of this folder, with the arguments of this script.
    process = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"ended after {limit_s:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status == LEFT_OUT:
        return "left out: this machine lacks a requirement"
    return f"exit status {status}" if status else ""


def too_large(folder: Path, since: float) -> list[str]:
    """Returns the traces written since a time that are too large for the repository."""
    written = (path for path in folder.rglob(TRACE_PATTERN) if path.stat().st_mtime >= since)
    sizes = {path.relative_to(folder): path.stat().st_size for path in written}
    return [f"{path}: {size:,} bytes" for path, size in sizes.items() if size > MOST_BYTES]


def main(options: argparse.Namespace) -> int:
    """Records all scenarios, or the named ones, and lists the failures."""
    on_cuda = options.device == "cuda"
    names = options.names or (CUDA_ONLY if on_cuda else ()) + SCENARIOS
    begin, whole_s = time.time(), WHOLE_CUDA_S if on_cuda else float("inf")
    failures = []
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            begun = time.time()
            limit_s = min(LIMIT_S, begin + whole_s - begun)
            if failure := record(name, options, cache, limit_s):
                failures.append(f"{name}: {failure}")
            sys.stdout.write(f"{name}: {time.time() - begun:.0f} s\n")
            sys.stdout.flush()
    failures += too_large(options.out, begin)
    sys.stderr.writelines(f"{line}\n" for line in failures)
    return 1 if any("left out" not in line for line in failures) else 0


if __name__ == "__main__":
    sys.exit(main(parse_options()))
