"""Run a command for `processes.measured`, and write its time and memory.

The kernel charges a process with the memory of its parent until it executes its own program. This
launcher has little memory, since it imports only the standard library.
"""

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    """Run `launcher.py REPORT COMMAND...`; the report is JSON."""
    start = time.perf_counter()
    process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
    _, status, usage = os.wait4(process, 0)
    report = {
        "whole_seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_kibibytes": usage.ru_maxrss,
    }
    Path(sys.argv[1]).write_text(json.dumps(report))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
