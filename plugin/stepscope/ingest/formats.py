"""What a file is that is no Chrome trace, told from its first bytes.

Profilers, exporters and servers write many other things beside traces, and people open them. The
first pattern that fits names the format and says what to do instead. Facts are from the formats'
own documentation or from files that their producers wrote; `tests/test_formats.py` has one each.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD_BYTES = 1 << 16
"""How much of a file, inflated, is looked at."""
FEWEST_PACKETS = 2
"""So many protobuf records in a row are no accident."""
MOST_KEYS = 64
"""The top-level keys that tell a format stand among the first."""
RECORD = (
    "Record a trace with torch.profiler.profile(...) and export_chrome_trace, "
    "or with on_trace_ready=torch.profiler.tensorboard_trace_handler(...)."
)


@dataclass(frozen=True, kw_only=True)
class ForeignFormat:
    """A format that stepscope does not read."""

    name: str
    what: str
    """What writes it or what is in it, to go after "This is"."""
    remedy: str
    """What to do instead: a sentence."""


CHAKRA = ForeignFormat(
    name="Chakra execution trace",
    what="a Chakra execution trace (torch's ExecutionTraceObserver): operators without their times",
    remedy=(
        "Open the Kineto trace of the same run; where there is none, record one beside it with "
        "torch.profiler.profile(..., execution_trace_observer=...) and export_chrome_trace."
    ),
)
XPLANE = ForeignFormat(
    name="XPlane",
    what="an XPlane profile (*.xplane.pb), which XLA, JAX and TensorFlow write",
    remedy=f"Open it with xprof. For PyTorch: {RECORD}",
)
NSIGHT_SYSTEMS = ForeignFormat(
    name="Nsight Systems",
    what="a report of NVIDIA Nsight Systems",
    remedy=f"Open it with nsys-ui, or: {RECORD}",
)
MEMORY_SNAPSHOT = ForeignFormat(
    name="memory snapshot",
    what="a snapshot of torch's allocator (torch.cuda.memory._dump_snapshot)",
    remedy="Let stepscope memory FILE tell what holds the memory.",
)
MEMORY_TIMELINE = ForeignFormat(
    name="memory timeline",
    what="a memory timeline (export_memory_timeline), without operators and kernels",
    remedy="Let stepscope memory FILE tell what it is for, or give the trace itself.",
)
FLIGHT_RECORDER = ForeignFormat(
    name="flight recorder",
    what="a dump of torch's flight recorder: collectives, without operators and kernels",
    remedy=f"Read it with torchfrtrace. {RECORD}",
)
CHECKPOINT = ForeignFormat(
    name="torch.save",
    what="what torch.save wrote: a checkpoint, no recording",
    remedy=RECORD,
)
ROCPROF = ForeignFormat(
    name="rocprof",
    what="a result of AMD's rocprof",
    remedy=f"Let rocprofv3 write --output-format pftrace for Perfetto, or: {RECORD}",
)
TABLE = ForeignFormat(
    name="CSV",
    what="a table (CSV), no trace",
    remedy="Give the trace from which it was made, a .json or .json.gz file.",
)
ASCEND_TABLE = ForeignFormat(
    name="Ascend profiler table",
    what="a table that the Ascend PyTorch Profiler writes",
    remedy="Give trace_view.json from the same folder (ASCEND_PROFILER_OUTPUT).",
)


def _archive(name: str, command: str) -> ForeignFormat:
    return ForeignFormat(
        name=name,
        what=f"an archive or compressed file ({name})",
        remedy=f"Unpack it first ({command}), or compress it with gzip: that is read as it is.",
    )


def _table(kind: str, what: str) -> ForeignFormat:
    return ForeignFormat(name=kind, what=what, remedy=TABLE.remedy)


_BINARY: tuple[tuple[bytes, ForeignFormat], ...] = (
    # a checkpoint is a zip archive whose first member is <name>/data.pkl or <name>/.format_version
    (rb"PK\x03\x04.{26}[^/]{1,255}/(?:data\.pkl|\.format_version|byteorder|version)", CHECKPOINT),
    (rb"PK(?:\x03\x04|\x05\x06)", _archive("zip", "unzip FILE")),
    (rb"\x1f\x8b", _archive("gzip in gzip", "gunzip FILE")),
    (rb"\x28\xb5\x2f\xfd", _archive("zstd", "zstd -d FILE")),
    (rb"\xfd7zXZ\x00", _archive("xz", "xz -d FILE")),
    (rb"BZh[1-9]", _archive("bzip2", "bunzip2 FILE")),
    (rb"7z\xbc\xaf\x27\x1c", _archive("7-Zip", "7z x FILE")),
    (rb"\x04\x22\x4d\x18", _archive("lz4", "lz4 -d FILE")),
    (rb"Rar!\x1a\x07", _archive("rar", "unrar x FILE")),
    (rb".{257}ustar", _archive("tar", "tar xf FILE")),
    (rb"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19", CHECKPOINT),  # before the zip format
    (rb"\x80[\x02-\x05](?=.*segments)(?=.*(?:total_size|device_traces))", MEMORY_SNAPSHOT),
    (rb"\x80[\x02-\x05](?=.*(?:pg_config|pg_status|nccl_version))", FLIGHT_RECORDER),
    (
        rb"\x80[\x02-\x05].",
        ForeignFormat(
            name="pickle",
            what="a Python pickle, which stepscope never opens: it can run any code",
            remedy=RECORD,
        ),
    ),
    (
        rb"[\x7b\xfb][\x29\xa9]\x03",  # a marshalled dict whose first key is a tuple of three
        ForeignFormat(
            name="cProfile",
            what="statistics of Python's cProfile, without times of single calls",
            remedy=RECORD,
        ),
    ),
    (
        rb"SQLite format 3\x00.*(?:CUPTI_ACTIVITY|NVTX_EVENTS|TARGET_INFO_|COMPOSITE_EVENTS)",
        NSIGHT_SYSTEMS,
    ),
    (rb"SQLite format 3\x00.*rocpd_", ROCPROF),
    (
        rb"SQLite format 3\x00.*(?:PYTORCH_API|CANN_API)",
        ForeignFormat(
            name="Ascend profiler database",
            what="a database that the Ascend PyTorch Profiler writes",
            remedy=(
                "Let it write trace_view.json too: torch_npu.profiler._ExperimentalConfig("
                "export_type=torch_npu.profiler.ExportType.Text)."
            ),
        ),
    ),
    (rb"SQLite format 3\x00", _table("SQLite", "an SQLite database, no trace")),
    (
        rb"NVR\x00",
        ForeignFormat(
            name="Nsight Compute",
            what="a report of NVIDIA Nsight Compute, on single kernels",
            remedy=f"Open it with ncu-ui. For whole steps: {RECORD}",
        ),
    ),
    (
        rb".{12,40}brain\.Event:\d",
        ForeignFormat(
            name="TensorBoard events",
            what="a TensorBoard event file (scalars, histograms), no trace",
            remedy=f"Give the log directory or the trace beside it. {RECORD}",
        ),
    ),
    (rb"PAR1", _table("Parquet", "a Parquet table, no trace")),
    (rb"ARROW1|FEA1", _table("Arrow", "an Arrow table, no trace")),
    (rb"\x89HDF|\x93NUMPY", _table("array file", "a file of arrays (HDF5, NumPy), no trace")),
    (
        rb"(?:\x89PNG|%PDF-|\xff\xd8\xff|GIF8)",
        ForeignFormat(name="picture", what="a picture or document, no trace", remedy=RECORD),
    ),
    (
        rb"\xff\xfe|\xfe\xff",
        ForeignFormat(
            name="UTF-16",
            what="text in UTF-16, as PowerShell's > writes it",
            remedy="Save it as UTF-8, or let the profiler write the file itself.",
        ),
    ),
    (
        rb"version https://git-lfs\.github\.com/spec/",
        ForeignFormat(
            name="git-lfs pointer",
            what="a pointer of git-lfs: the file itself was not fetched",
            remedy="Run git lfs pull in its repository.",
        ),
    ),
    (rb"\s*<html>\s*<head>.{0,80}GPU Memory Timeline HTML", MEMORY_TIMELINE),
    (
        rb"\s*(?:<!--.*?-->\s*)?(?i:<!doctype html|<html|<head|<body)",
        ForeignFormat(
            name="HTML",
            what="an HTML page, often a log-in or error page that was saved in the file's place",
            remedy="Download the file itself; a browser or token may be needed for that.",
        ),
    ),
    (rb"\s*<\?xml|\s*<Error>", ForeignFormat(name="XML", what="XML, no trace", remedy=RECORD)),
    # Chakra's protobuf: the length of the first message, and in it the schema's version
    (rb"(?:[\x80-\xff]{0,3}[\x03-\x7f])\x0a[\x03-\x20]\d+\.\d+\.\d+", CHAKRA),
    # XSpace's first plane, by the names that planes have
    (rb"\x0a.{0,8}(?:\x08.{1,10})?\x12.(?:/host:|/device:|Task Environment)", XPLANE),
)
_TEXT: tuple[tuple[bytes, ForeignFormat], ...] = (
    (
        rb'"?Kind"?,"?Agent_Id|"?Index"?,"?KernelName|"?Domain"?,"?Function"?,'
        rb'|"?Name"?,"?Calls"?,"?TotalDurationNs',
        ROCPROF,
    ),
    (rb'"?Step Id"?,"?Device_id|[^\n]*,"?Accelerator Core"?,|"?Device_id"?,', ASCEND_TABLE),
    (
        rb'(?:[^\n]*\n){0,3}"?(?:Time \(%\)|Start \(ns\))"?,|(?:==PROF==|"ID","Process ID")',
        _table("Nsight table", "a table that Nsight Systems or Nsight Compute writes"),
    ),
    (
        rb"[^{\[]{0,400}?Self CPU.{0,2000}?# of Calls",
        ForeignFormat(
            name="key_averages",
            what="the printed table of key_averages(), without single events",
            remedy="Give the trace itself: prof.export_chrome_trace(path).",
        ),
    ),
    (
        rb"[^\n{\[;]*;[^\n]* \d+\n",
        ForeignFormat(
            name="folded stacks",
            what="folded stacks for a flame graph (export_stacks), without times of single events",
            remedy="Give the trace itself: prof.export_chrome_trace(path).",
        ),
    ),
    (rb"[^\n{\[,]+(?:,[^\n,{\[]*){2,}\r?\n[^\n]*,", TABLE),
    (
        rb"[^{\[]",
        ForeignFormat(name="text", what="text that is no JSON", remedy=RECORD),
    ),
)
_PATTERNS = tuple((re.compile(p, re.DOTALL), found) for p, found in _BINARY)
_TEXT_PATTERNS = tuple((re.compile(p, re.DOTALL), found) for p, found in _TEXT)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_NSIGHT_WORDS = re.compile(rb"QuadD|Nsight Systems")
"""The format of *.nsys-rep is not public; these are names in it."""
_NUMBER_LISTS = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*-?\d")
_KEY = re.compile(r'[\s,]*"([^"\\]{1,100})"\s*:\s*')
_PACKET = re.compile(rb"\x0a([\x80-\xff]{0,4}[\x00-\x7f])", re.DOTALL)
PERFETTO = ForeignFormat(
    name="Perfetto",
    what="a Perfetto trace in protobuf (*.pftrace), or another file of protobuf records",
    remedy=f"Open it at https://ui.perfetto.dev, or: {RECORD}",
)
SPEEDSCOPE = ForeignFormat(
    name="speedscope",
    what="a speedscope profile: stacks of functions, without operators and kernels",
    remedy=f"Open it at https://www.speedscope.app, or: {RECORD}",
)
_JSON: tuple[tuple[frozenset[str], ForeignFormat], ...] = (
    (frozenset({"schema", "nodes"}), CHAKRA),
    (frozenset({"rocprofiler-sdk-tool"}), ROCPROF),
    (
        frozenset({"nodes", "samples"}),
        ForeignFormat(
            name="cpuprofile",
            what="a CPU profile of V8 (Chrome, Node.js): samples of JavaScript",
            remedy=RECORD,
        ),
    ),
    (frozenset({"segments", "device_traces"}), MEMORY_SNAPSHOT),
    (frozenset({"pg_config", "entries"}), FLIGHT_RECORDER),
    (
        frozenset({"meta", "threads"}),
        ForeignFormat(
            name="Firefox Profiler",
            what="a profile of the Firefox Profiler, without operators and kernels",
            remedy=f"Open it at https://profiler.firefox.com, or: {RECORD}",
        ),
    ),
    (
        frozenset({"cells", "nbformat"}),
        ForeignFormat(name="notebook", what="a Jupyter notebook, no trace", remedy=RECORD),
    ),
    (
        frozenset({"start_time", "root_frame"}),
        ForeignFormat(
            name="pyinstrument",
            what="a profile of pyinstrument: Python functions, without operators and kernels",
            remedy=RECORD,
        ),
    ),
    (
        frozenset({"nodes"}),
        ForeignFormat(
            name="graph",
            what="a graph of nodes, without events and their times",
            remedy=RECORD,
        ),
    ),
    (
        frozenset({"error"}),
        ForeignFormat(
            name="error message",
            what="an error that a server answered instead of the file",
            remedy="Download the file again, with access to it.",
        ),
    ),
)
HAR = ForeignFormat(
    name="HAR",
    what="an HTTP archive (HAR): a browser's network log",
    remedy=RECORD,
)


def foreign_format(head: bytes) -> ForeignFormat | None:
    """Return what a file with these first bytes (inflated) is, None for a trace or the unknown.

    Chrome traces of any producer give None, and so does anything that might be a damaged one.
    """
    head = head[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    for pattern, found in _PATTERNS:
        if pattern.match(head):
            return found
    if _NOT_TEXT.search(head):
        return _binary_format(head)
    if not head.lstrip().startswith((b"{", b"[")):
        return next((found for pattern, found in _TEXT_PATTERNS if pattern.match(head)), None)
    return MEMORY_TIMELINE if _NUMBER_LISTS.match(head) else _json_format(head)


def _binary_format(head: bytes) -> ForeignFormat | None:
    if _NSIGHT_WORDS.search(head):
        return NSIGHT_SYSTEMS
    return PERFETTO if _is_protobuf_records(head) else None


def _is_protobuf_records(head: bytes) -> bool:
    """Tell whether the head is records of protobuf's field 1, one behind the other."""
    at = count = 0
    while at < len(head) and (record := _PACKET.match(head, at)):
        size = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(record[1]))
        at = record.end() + size
        count += 1
    return count >= FEWEST_PACKETS and at >= len(head)


def _json_format(head: bytes) -> ForeignFormat | None:
    members = dict(_members(head.decode("utf-8", "replace")))
    if "traceEvents" in members:
        return None
    if "speedscope.app" in str(members.get("$schema", "")):
        return SPEEDSCOPE
    log = members.get("log")
    if isinstance(log, Mapping) and "creator" in log:
        return HAR
    return next((found for keys, found in _JSON if keys <= members.keys()), None)


def _members(text: str, levels: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield the top-level members of a JSON object whose end may be missing.

    Of the last member, if it is cut, the value is what its own members are, down so many levels.
    """
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{") + 1
    if not at or text[: at - 1].strip():
        return
    for _ in range(MOST_KEYS):
        key = _KEY.match(text, at)
        if key is None:
            return
        try:
            value, at = decoder.raw_decode(text, key.end())
        except (ValueError, RecursionError):
            yield key[1], dict(_members(text[key.end() :], levels - 1)) if levels > 1 else None
            return
        yield key[1], value
