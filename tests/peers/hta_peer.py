"""HolisticTraceAnalysis' own figures of traces, as plain numbers.

HTA is fast under an older pandas only, so it runs in a process of its own, which is this file:
`python hta_peer.py '{"paths": [...], "exact": true}'` writes JSON. As it comes, HTA rounds times to
microseconds (a start up, an end down) and drops what was launched in the last step; both can be
switched off by its own options, and `exact` does so. A figure that it cannot give is
`{"error": why}`.
"""

import contextlib
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv"
SEARCHED = (ENVIRONMENT / "peers", ENVIRONMENT / "pandas-2.2.3")
Figures = dict[str, Any]
PLAIN_COLUMNS = ["ts", "dur", "stream", "correlation", "name", "cat"]
MOST_KERNELS = 60
MOST_OPERATORS = 4
"""How many operators' kernel sequences are asked for: each takes HTA seconds."""


def require() -> None:
    """Skip what needs HTA where it was not installed."""
    missing = [path.name for path in SEARCHED if not path.is_dir()]
    if missing:
        pytest.skip(f"`make test` installs what HTA needs: .venv has no {' and no '.join(missing)}")


@cache
def figures(
    paths: tuple[Path, ...], *, exact: bool = True, sequences: bool = False
) -> dict[Path, Figures]:
    """What HTA makes of each file: see `_asked`; `{"error": why}` for one that it cannot load.

    Kernel sequences are given instead of all else, since they take it long.
    """
    require()
    options = {"exact": exact, "sequences": sequences}
    asked = json.dumps({"paths": [str(path) for path in paths], **options})
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.defpath,
            "HOME": home,
            "PYTHONPATH": os.pathsep.join(map(str, SEARCHED)),
            "HTA_DISABLE_NS_ROUNDING": str(int(exact)),
        }
        command = [sys.executable, "-W", "ignore", __file__, asked]
        ran = subprocess.run(command, env=environment, cwd=home, capture_output=True, check=False)
    assert not ran.returncode, ran.stderr.decode()[-2000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    return {path: found[str(path)] for path in paths}


# --- in the process of its own -------------------------------------------------------------------


def _figures(path: str, *, exact: bool, sequences: bool) -> Figures:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: path}, include_last_profiler_step=exact)
    asked = {"sequences": _sequences} if sequences else _asked()
    return {name: _or_error(figure, analysis) for name, figure in asked.items()}


def _asked() -> dict[str, Callable[[Any], Any]]:
    return {
        "events": _events,
        "temporal": lambda of: _rows(of.get_temporal_breakdown(visualize=False))[0],
        "overlap": lambda of: _rows(of.get_comm_comp_overlap(visualize=False))[0],
        "types": lambda of: _rows(_kernel_breakdown(of)[0]),
        "kernels": lambda of: _rows(_kernel_breakdown(of)[1]),
        "idle": lambda of: _rows(of.get_idle_time_breakdown(ranks=[0], visualize=False)[0]),
        "launches": _launches,
        "queue": lambda of: _rows(of.get_queue_length_summary([0])),
        "queue_full": _queue_full,
        "bandwidth": lambda of: _rows(of.get_memory_bw_summary([0])),
        "annotations": lambda of: _rows(
            of.get_gpu_user_annotation_breakdown(visualize=False, num_kernels=10**9)
        ),
        "annotated": _annotated,
        "counters": _counters,
    }


def _or_error(figure: Callable[[Any], Any], analysis: Any) -> Any:
    try:
        return figure(analysis)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _rows(frame: Any) -> list[dict[str, Any]]:
    if frame is None:
        return []
    if frame.columns.nlevels > 1:
        frame.columns = [str(names[-1]) for names in frame.columns]
    if frame.index.names != [None]:
        frame = frame.reset_index()
    return [_plain(row) for row in frame.to_dict("records")]


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    values = {
        str(key): getattr(value, "item", lambda value=value: value)() for key, value in row.items()
    }
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in values.items()
    }


def _kernel_breakdown(analysis: Any) -> Any:
    return analysis.get_gpu_kernel_breakdown(
        visualize=False, duration_ratio=1.0, num_kernels=10**9, include_memory_kernels=True
    )


def _events(analysis: Any) -> list[dict[str, Any]]:
    """The device events that HTA kept."""
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    kept = frame[frame["stream"].ne(-1)][PLAIN_COLUMNS].copy()
    kept["ts"] += analysis.t.min_ts
    for column in ("name", "cat"):
        kept[column] = [symbols[code] for code in kept[column]]
    return _rows(kept)


def _launches(analysis: Any) -> list[dict[str, Any]]:
    return _rows(analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0])


def _queue_full(analysis: Any) -> list[dict[str, Any]]:
    series = analysis.get_queue_length_time_series([0])
    return _rows(analysis.get_time_spent_blocked_on_full_queue(series))


def _annotated(analysis: Any) -> list[dict[str, Any]]:
    kernels = analysis.get_gpu_kernels_with_user_annotations(
        rank=0, expand_names=True, shortern_names=False
    )
    if kernels is None:
        return []
    return _rows(kernels[["ts", "s_name", "s_user_annotation"]])


def _counters(analysis: Any) -> list[dict[str, Any]]:
    return [row for of in analysis.get_cupti_counter_data_with_operators([0]) for row in _rows(of)]


def _sequences(analysis: Any) -> dict[str, list[dict[str, Any]]]:
    """Kernel sequences of those operators that launch the most kernels, drawn nowhere."""
    from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
    from hta.common.trace import Trace
    from hta.common.trace_call_graph import CallGraph

    CudaKernelAnalysis._overlay_frequent_patterns_with_trace = lambda *_, **__: {}  # noqa: SLF001
    Trace.write_raw_trace = lambda *_, **__: None
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    CallGraph(analysis.t, ranks=[0])
    launching = frame[frame["stream"].eq(-1) & frame["num_kernels"].between(3, MOST_KERNELS)]
    by_name = launching.groupby("name")
    # of operators that call themselves it takes the outermost calls only
    names = by_name["num_kernels"].sum()[by_name["depth"].nunique() == 1]
    names = names.nlargest(MOST_OPERATORS).index
    with tempfile.TemporaryDirectory() as folder:
        return {
            symbols[name]: _rows(
                analysis.get_frequent_cuda_kernel_sequences(symbols[name], folder, visualize=False)
            )
            for name in names
        }


def _loaded(path: str, options: dict[str, bool]) -> Figures:
    return _or_error(lambda _: _figures(path, **options), None)  # type: ignore[no-any-return]


def _main(arguments: Sequence[str]) -> None:
    asked = json.loads(arguments[0])
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sys.stderr):
        options = {name: asked[name] for name in ("exact", "sequences")}
        found = {path: _loaded(path, options) for path in asked["paths"]}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1:])
