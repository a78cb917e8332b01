"""Recognition of files that are not Chrome traces, by their first bytes.

Users also open files of other profilers, exporters and servers. The first matching pattern
determines the format and the remedy. Facts are from the formats' own documentation or from files
that their producers wrote; `tests/test_formats.py` has one of each.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD_BYTES = 1 << 16
"""Examined bytes of an inflated file."""
FEWEST_PACKETS = 2
"""Number of consecutive protobuf records that rules out coincidence."""
MOST_KEYS = 64
"""Limit of top-level keys that are checked."""
RECORD = (
    "Record a trace with torch.profiler.profile(...) and export_chrome_trace, "
    "or with on_trace_ready=torch.profiler.tensorboard_trace_handler(...)."
)


@dataclass(frozen=True)
class ForeignFormat:
    """A format that stepscope does not read."""

    name: str
    what: str
    """Its producer or contents; follows "This is"."""
    remedy: str = RECORD
    """Remedy, as a sentence."""


CHAKRA = ForeignFormat(
    "Chakra execution trace",
    "a Chakra execution trace (torch's ExecutionTraceObserver): operators without their times",
    "Open the Kineto trace of the same run; if there is none, record one alongside it with "
    "torch.profiler.profile(..., execution_trace_observer=...) and export_chrome_trace.",
)
XPLANE = ForeignFormat(
    "XPlane",
    "an XPlane profile (*.xplane.pb), which XLA, JAX and TensorFlow write",
    f"Open it with xprof. For PyTorch: {RECORD}",
)
NSIGHT_SYSTEMS = ForeignFormat(
    "Nsight Systems", "a report of NVIDIA Nsight Systems", f"Open it with nsys-ui, or: {RECORD}"
)
MEMORY_SNAPSHOT = ForeignFormat(
    "memory snapshot",
    "a snapshot of torch's allocator (torch.cuda.memory._dump_snapshot)",
    "Run stepscope memory FILE to see the contents of the memory.",
)
MEMORY_TIMELINE = ForeignFormat(
    "memory timeline",
    "a memory timeline (export_memory_timeline), without operators and kernels",
    "Run stepscope memory FILE to see its purpose, or give the trace itself.",
)
FLIGHT_RECORDER = ForeignFormat(
    "flight recorder",
    "a dump of torch's flight recorder: collectives, without operators and kernels",
    f"Read it with torchfrtrace. {RECORD}",
)
CHECKPOINT = ForeignFormat("torch.save", "a file of torch.save: a checkpoint, not a trace")
ROCPROF = ForeignFormat(
    "rocprof",
    "a result of AMD's rocprof",
    f"Let rocprofv3 write --output-format pftrace for Perfetto, or: {RECORD}",
)
TABLE = ForeignFormat(
    "CSV",
    "a table (CSV), not a trace",
    "Give the trace from which it was made, a .json or .json.gz file.",
)
ASCEND_TABLE = ForeignFormat(
    "Ascend profiler table",
    "a table that the Ascend PyTorch Profiler writes",
    "Give trace_view.json from the same folder (ASCEND_PROFILER_OUTPUT).",
)


def _archive(name: str, command: str) -> ForeignFormat:
    return ForeignFormat(
        name,
        f"an archive or compressed file ({name})",
        f"Unpack it first ({command}), or compress it with gzip: that is read as it is.",
    )


def _table(kind: str, what: str) -> ForeignFormat:
    return ForeignFormat(kind, what, TABLE.remedy)


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
            "pickle", "a Python pickle, which stepscope never opens: it can run any code"
        ),
    ),
    (
        rb"[\x7b\xfb][\x29\xa9]\x03",  # a marshalled dict whose first key is a tuple of three
        ForeignFormat("cProfile", "statistics of Python's cProfile, without times of single calls"),
    ),
    (
        rb"SQLite format 3\x00.*(?:CUPTI_ACTIVITY|NVTX_EVENTS|TARGET_INFO_|COMPOSITE_EVENTS)",
        NSIGHT_SYSTEMS,
    ),
    (rb"SQLite format 3\x00.*rocpd_", ROCPROF),
    (
        rb"SQLite format 3\x00.*(?:PYTORCH_API|CANN_API)",
        ForeignFormat(
            "Ascend profiler database",
            "a database that the Ascend PyTorch Profiler writes",
            "Let it write trace_view.json too: torch_npu.profiler._ExperimentalConfig("
            "export_type=torch_npu.profiler.ExportType.Text).",
        ),
    ),
    (rb"SQLite format 3\x00", _table("SQLite", "an SQLite database, not a trace")),
    (
        rb"NVR\x00",
        ForeignFormat(
            "Nsight Compute",
            "a report of NVIDIA Nsight Compute, on single kernels",
            f"Open it with ncu-ui. For whole steps: {RECORD}",
        ),
    ),
    (
        rb".{12,40}brain\.Event:\d",
        ForeignFormat(
            "TensorBoard events",
            "a TensorBoard event file (scalars, histograms), not a trace",
            f"Give the log directory, or the trace there. {RECORD}",
        ),
    ),
    (rb"PAR1", _table("Parquet", "a Parquet table, not a trace")),
    (rb"ARROW1|FEA1", _table("Arrow", "an Arrow table, not a trace")),
    (rb"\x89HDF|\x93NUMPY", _table("array file", "a file of arrays (HDF5, NumPy), not a trace")),
    (
        rb"(?:\x89PNG|%PDF-|\xff\xd8\xff|GIF8)",
        ForeignFormat("picture", "a picture or document, not a trace"),
    ),
    (
        rb"\xff\xfe|\xfe\xff",
        ForeignFormat(
            "UTF-16",
            "text in UTF-16, as PowerShell's > writes it",
            "Save it as UTF-8, or let the profiler write the file itself.",
        ),
    ),
    (
        rb"version https://git-lfs\.github\.com/spec/",
        ForeignFormat(
            "git-lfs pointer",
            "a pointer of git-lfs: the file itself was not fetched",
            "Run git lfs pull in its repository.",
        ),
    ),
    (rb"\s*<html>\s*<head>.{0,80}GPU Memory Timeline HTML", MEMORY_TIMELINE),
    (
        rb"\s*(?:<!--.*?-->\s*)?(?i:<!doctype html|<html|<head|<body)",
        ForeignFormat(
            "HTML",
            "an HTML page, often a log-in or error page that was saved instead of the file",
            "Download the file itself; a browser or token may be needed for that.",
        ),
    ),
    (rb"\s*<\?xml|\s*<Error>", ForeignFormat("XML", "XML, not a trace")),
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
            "key_averages",
            "the printed table of key_averages(), without single events",
            "Give the trace itself: prof.export_chrome_trace(path).",
        ),
    ),
    (
        rb"[^\n{\[;]*;[^\n]* \d+\n",
        ForeignFormat(
            "folded stacks",
            "folded stacks for a flame graph (export_stacks), without times of single events",
            "Give the trace itself: prof.export_chrome_trace(path).",
        ),
    ),
    (rb"[^\n{\[,]+(?:,[^\n,{\[]*){2,}\r?\n[^\n]*,", TABLE),
    (rb"[^{\[]", ForeignFormat("text", "text that is not JSON")),
)
_PATTERNS = tuple((re.compile(p, re.DOTALL), format_) for p, format_ in _BINARY)
_TEXT_PATTERNS = tuple((re.compile(p, re.DOTALL), format_) for p, format_ in _TEXT)
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_NSIGHT_WORDS = re.compile(rb"QuadD|Nsight Systems")
"""Names in the private format of *.nsys-rep."""
_NUMBER_LISTS = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*-?\d")
_KEY = re.compile(r'[\s,]*"([^"\\]{1,100})"\s*:\s*')
_PACKET = re.compile(rb"\x0a([\x80-\xff]{0,4}[\x00-\x7f])", re.DOTALL)
PERFETTO = ForeignFormat(
    "Perfetto",
    "a Perfetto trace in protobuf (*.pftrace), or another file of protobuf records",
    f"Open it at https://ui.perfetto.dev, or: {RECORD}",
)
SPEEDSCOPE = ForeignFormat(
    "speedscope",
    "a speedscope profile: stacks of functions, without operators and kernels",
    f"Open it at https://www.speedscope.app, or: {RECORD}",
)
_JSON: tuple[tuple[frozenset[str], ForeignFormat], ...] = (
    (frozenset({"schema", "nodes"}), CHAKRA),
    (frozenset({"rocprofiler-sdk-tool"}), ROCPROF),
    (
        frozenset({"nodes", "samples"}),
        ForeignFormat("cpuprofile", "a CPU profile of V8 (Chrome, Node.js): samples of JavaScript"),
    ),
    (frozenset({"segments", "device_traces"}), MEMORY_SNAPSHOT),
    (frozenset({"pg_config", "entries"}), FLIGHT_RECORDER),
    (
        frozenset({"meta", "threads"}),
        ForeignFormat(
            "Firefox Profiler",
            "a profile of the Firefox Profiler, without operators and kernels",
            f"Open it at https://profiler.firefox.com, or: {RECORD}",
        ),
    ),
    (
        frozenset({"cells", "nbformat"}),
        ForeignFormat("notebook", "a Jupyter notebook, not a trace"),
    ),
    (
        frozenset({"start_time", "root_frame"}),
        ForeignFormat(
            "pyinstrument",
            "a profile of pyinstrument: Python functions, without operators and kernels",
        ),
    ),
    (
        frozenset({"nodes"}),
        ForeignFormat("graph", "a graph of nodes, without events and their times"),
    ),
    (
        frozenset({"error"}),
        ForeignFormat(
            "error message",
            "an error that a server sent instead of the file",
            "Download the file again, with access to it.",
        ),
    ),
)
HAR = ForeignFormat("HAR", "an HTTP archive (HAR): a browser's network log")


def foreign_format(head: bytes) -> ForeignFormat | None:
    """Return the format of a file with these first bytes (inflated); None if it may be a trace.

    Chrome traces of any producer give None, including damaged ones.
    """
    head = head[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    for pattern, format_ in _PATTERNS:
        if pattern.match(head):
            return format_
    if _NOT_TEXT.search(head):
        return _binary_format(head)
    if not head.lstrip().startswith((b"{", b"[")):
        return next((format_ for pattern, format_ in _TEXT_PATTERNS if pattern.match(head)), None)
    return MEMORY_TIMELINE if _NUMBER_LISTS.match(head) else _json_format(head)


def _binary_format(head: bytes) -> ForeignFormat | None:
    if _NSIGHT_WORDS.search(head):
        return NSIGHT_SYSTEMS
    return PERFETTO if _is_protobuf_records(head) else None


def _is_protobuf_records(head: bytes) -> bool:
    """Return whether the head is a sequence of records of protobuf's field 1."""
    at = count = 0
    while at < len(head) and (record := _PACKET.match(head, at)):
        size = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(record[1]))
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
    return next((format_ for keys, format_ in _JSON if keys <= members.keys()), None)


def _members(text: str, levels: int = 2) -> Iterator[tuple[str, Any]]:
    """Yield the top-level members of a JSON object whose end may be missing.

    The value of a truncated last member is a dict of its own members, for `levels` levels.
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
