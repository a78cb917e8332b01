"""`make fuzz`: build the scanner with sanitizers, and feed it mutated traces."""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "plugin" / "stepscope" / "ingest" / "_scanner.pyx"
MADE = ROOT / ".cache" / "fuzz"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SEED_FILES = 12


def built() -> Path:
    """The module, compiled anew where its source has changed."""
    MADE.mkdir(parents=True, exist_ok=True)
    module = MADE / f"_scanner{sysconfig.get_config_var('EXT_SUFFIX')}"
    if module.exists() and module.stat().st_mtime > SOURCE.stat().st_mtime:
        return module
    translated = MADE / "_scanner.c"
    cython = [sys.executable, "-m", "cython", "-3", str(SOURCE), "-o", str(translated)]
    subprocess.run(cython, check=True)
    include = f"-I{sysconfig.get_paths()['include']}"
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", *SANITIZERS, include]
    subprocess.run(["gcc", *flags, str(translated), "-o", str(module)], check=True)
    return module


def environment() -> dict[str, str]:
    """What the sanitizers need: their library first, and Python's memory from malloc."""
    found = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    paths = [str(ROOT / "tests"), str(ROOT / "plugin"), str(ROOT / "sample_logs" / "record")]
    return os.environ | {
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0,abort_on_error=1,allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1,print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join(paths),
        "OPENBLAS_NUM_THREADS": "1",
    }


def _begun(
    worker: list[str], seeds: list[str], count: int, seed: int
) -> tuple[Path, "subprocess.Popen[str]"]:
    last = MADE / f"last-{seed}"
    numbers = ["--count", str(count), "--seed", str(seed), "--last", str(last)]
    command = [*worker, *numbers, *seeds]
    return last, subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)


def _ended(last: Path, process: "subprocess.Popen[str]") -> dict[str, int] | None:
    """What a process counted; None, and its last input kept, where it failed."""
    said, _ = process.communicate()
    if process.returncode == 0:
        counts: dict[str, int] = json.loads(said)
        return counts
    data = last.read_bytes()
    kept = last.with_name(f"failed-{last.name}")
    kept.write_bytes(data[8 : 8 + int.from_bytes(data[:8], "little")])
    sys.stdout.write(f"failed; again: make fuzz INPUT={kept}\n")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000_000, help="inputs in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--input", help="run this one input again")
    asked = parser.parse_args()
    module = built()
    worker = [sys.executable, "-m", "fuzz.worker", "--module", str(module)]
    if asked.input:
        command = [*worker, "--last", os.devnull, "--input", asked.input]
        return subprocess.run(command, env=environment(), check=False).returncode
    logs = sorted((ROOT / "sample_logs").rglob("*.json.gz"))
    seeds = [str(path) for path in logs[:: max(1, len(logs) // SEED_FILES)]]
    each = asked.count // asked.jobs
    began = time.monotonic()
    running = [_begun(worker, seeds, each, asked.seed + job) for job in range(asked.jobs)]
    counts = [_ended(last, process) for last, process in running]
    total = {
        name: sum(count[name] for count in counts if count)
        for name in next(filter(None, counts), {})
    }
    failed = counts.count(None)
    rate = total.get("inputs", 0) / (time.monotonic() - began)
    sys.stdout.write(
        f"seed {asked.seed}: {json.dumps(total)}; {failed} processes failed; {rate:,.0f} inputs/s\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
