"""Records every scenario again, each in a process of its own: `python all.py [--device cuda]`.

Options are passed on to the scenarios: `--device`, `--out`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIOS = (
    "dataloader",
    "batch_size",
    "precision",
    "masking",
    "metrics",
    "language_model",
    "ranks",
    "compiled",
)
HERE = Path(__file__).resolve().parent
# Without it torch warns that memory was there before the profiler started, as it always is.
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}


def record(scenario: str, options: list[str], cache: str) -> bool:
    """Runs one scenario, its compiled code kept in `cache`; true if it went well."""
    command = [sys.executable, str(HERE / f"{scenario}.py"), *options]
    environment = os.environ | QUIET | {"TORCHINDUCTOR_CACHE_DIR": cache}
    # Scripts of this folder, with the arguments of whoever called this one.
    return subprocess.run(command, env=environment, check=False).returncode == 0  # noqa: S603


def main(options: list[str]) -> int:
    """Records all, and names those that failed."""
    with tempfile.TemporaryDirectory() as cache:
        failed = [name for name in SCENARIOS if not record(name, options, cache)]
    if failed:
        sys.stderr.write(f"Not recorded: {', '.join(failed)}. See the messages above.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
