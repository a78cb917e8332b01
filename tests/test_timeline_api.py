"""What the API says of the timeline."""

import json
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import flask.testing
import numpy as np
import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.timeline import timeline as timelines
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.timeline import timeline
from stepscope.analyses.timeline.track_events import track_events
from test_api import client_of

pytestmark = pytest.mark.frames

ROWS: tuple[tracebuild.Row, ...] = (
    ["user_annotation", "ProfilerStep#3", 0, 100],
    ["cpu_op", "aten::linear", 10, 40, {"Input Dims": [[8, 8]]}],
    ["cpu_op", "aten::mm", 20, 20],
    ["cuda_runtime", "cudaLaunchKernel", 25, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaMemcpyAsync", 60, 5, {"correlation": 2}],
    ["kernel", "gemm", 40, 30, {"correlation": 1, "stream": 7}],
    ["gpu_memcpy", "Memcpy DtoH", 80, 10, {"correlation": 2, "stream": 20, "bytes": 4096}],
    ["cpu_instant_event", "[memory]", 22, None, {"Bytes": 512, "Device Type": 1, "Device Id": 0,
     "Total Allocated": 512, "Total Reserved": 2048, "Addr": 1}],
    ["cpu_instant_event", "[memory]", 72, None, {"Bytes": -512, "Device Type": 1, "Device Id": 0,
     "Total Allocated": 0, "Total Reserved": 2048, "Addr": 1}],
)  # fmt: skip
US = 1000
EVENTS = {row[1]: place for place, row in enumerate(ROWS)}


class Client:
    """Asks about the timeline of the only recording of a log."""

    def __init__(self, client: flask.testing.FlaskClient) -> None:
        self._client = client
        [run] = client.get("/api/runs").get_json()["runs"]
        self._base = f"/api/traces/{run['workers'][0]['spans'][0]['trace']}/timeline"

    def get(self, path: str, status: int = 200, **parameters: Any) -> Any:
        answer = self._client.get(f"{self._base}/{path}", query_string=parameters)
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.get_json()

    def tile(self, status: int = 200, **parameters: Any) -> Any:
        answer = self._client.get(f"{self._base}/tiles", query_string=parameters)
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.get_data() if status == 200 else answer.get_json()

    def track(self, label: str) -> dict[str, Any]:
        tracks: list[dict[str, Any]] = self.get("tracks")["tracks"]
        return next(track for track in tracks if track["label"] == label)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return asking(tmp_path, ROWS)


def asking(folder: Path, rows: tuple[tracebuild.Row, ...]) -> Client:
    document = tracebuild.document(rows=rows)
    path = folder / "log" / "run" / "worker.1.pt.trace.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document, default=str))
    return Client(client_of(folder / "log"))


def name(answer: Any) -> str | None:
    """What the slice that was found is called."""
    return None if answer["hit"] is None else str(answer["hit"]["name"])


def decoded(body: bytes) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """A tile's header and arrays, read as the page does."""
    assert body[:4] == b"TLT2"
    length = int.from_bytes(body[4:8], "little")
    header = json.loads(body[8 : 8 + length])
    at = -(-(8 + length) // 8) * 8
    arrays = {}
    names = (("name", "<u4"), ("event", "<u4"), ("count", "<u4"), ("x", "<u2"), ("width", "<u2"),
             ("category", "u1"), ("busy", "u1"))  # fmt: skip
    for key, kind in names:
        array = np.frombuffer(body, kind, header["slice_count"], at)
        arrays[key] = array.tolist()
        at += array.nbytes
    assert at == len(body)
    return header, arrays


def test_tracks_are_shown_steps_first_then_devices_then_threads(client: Client) -> None:
    answer = client.get("tracks")

    titles = [
        (track["kind"], track["label"], track["parent"], track["row_count"], track["event_count"])
        for track in answer["tracks"]
    ]
    assert titles == [
        ("steps", "Steps", None, 1, 1),
        ("group", "GPU 0", None, 0, None),
        ("stream", "Stream 7", 1, 1, 1),
        ("stream", "Stream 20", 1, 1, 1),
        ("idle", "Idle", 1, 1, None),
        ("counter", "Busy", 1, 0, None),
        ("counter", "Queue", 1, 0, None),
        ("counter", "Copy bandwidth", 1, 0, None),
        ("counter", "CUDA 0 memory allocated", 1, 0, None),
        ("counter", "CUDA 0 memory reserved", 1, 0, None),
        ("group", "Process 100", None, 0, None),
        ("thread", "Main thread", 10, 4, 5),
    ]
    assert answer["steps"] == [{"number": 3, "start_ns": 0, "end_ns": 100 * US}]
    assert (answer["start_ns"], answer["end_ns"], answer["note"]) == (0, 100 * US, "")
    assert [each["id"] for each in answer["categories"]] == list(CATEGORIES)


def test_busy_time_is_that_of_anything_on_the_track(client: Client) -> None:
    assert client.track("Main thread")["busy_ns"] == 100 * US
    assert client.track("Stream 7")["busy_ns"] == 30 * US
    assert client.track("Idle")["busy_ns"] is None


def test_a_tile_is_a_header_and_arrays(client: Client) -> None:
    names = client.get("names")["names"]
    track = client.track("Main thread")["id"]

    header, arrays = decoded(client.tile(level=7, tile=0, tracks=track))

    assert header == {
        "level": 7,
        "tile": 0,
        "rows": [
            {"track": track, "row": row, "count": count}
            for row, count in ((0, 1), (1, 2), (2, 1), (3, 1))
        ],
        "slice_count": 5,
        "is_truncated": False,
        "left_out_row_count": 0,
    }
    assert [names[code] for code in arrays["name"]] == [
        "ProfilerStep#3", "aten::linear", "cudaMemcpyAsync", "aten::mm", "cudaLaunchKernel",
    ]  # fmt: skip
    assert arrays["event"] == [0, 1, 4, 2, 3]
    assert arrays["count"] == [1] * 5
    assert arrays["x"] == [int(us * US * 16 / 128) for us in (0, 10, 60, 20, 25)]
    assert arrays["width"] == [
        int((start + length) * US * 16 / 128) - int(start * US * 16 / 128)
        for start, length in ((0, 100), (10, 40), (60, 5), (20, 20), (25, 5))
    ]
    codes = list(CATEGORIES)
    assert [codes[code] for code in arrays["category"]] == [
        "annotation", "cpu", "runtime", "cpu", "runtime",
    ]  # fmt: skip
    assert arrays["busy"] == [255] * 5


def test_slices_of_less_than_a_pixel_are_one_item_with_the_longest_ones_name(
    tmp_path: Path,
) -> None:
    rows = tuple(
        ["cpu_op", f"op{place}", start, length]
        for place, (start, length) in enumerate([(0, 1), (4, 3), (8, 2), (1000, 1)])
    )
    client = asking(tmp_path, rows)

    _, arrays = decoded(client.tile(level=14, tile=0))

    names = client.get("names")["names"]
    assert [names[code] for code in arrays["name"]] == ["op1", "op3"]
    assert arrays["count"] == [3, 1]
    assert arrays["busy"] == [int(255 * 6 / 10), 255]
    assert arrays["event"] == [1, 3]


def test_a_slice_is_cut_at_the_tiles_edges(client: Client) -> None:
    track = client.track("Steps")["id"]

    _, arrays = decoded(client.tile(level=5, tile=1, tracks=track))

    assert (arrays["x"], arrays["width"]) == ([0], [16 * 1024])


def test_idle_times_are_slices_of_no_event(client: Client) -> None:
    track = client.track("Idle")["id"]

    header, arrays = decoded(client.tile(level=7, tile=0, tracks=track))

    labels = [client.get("names")["names"][code] for code in arrays["name"]]
    assert header["rows"] == [{"track": track, "row": 0, "count": len(labels)}]
    assert set(arrays["event"]) == {2**32 - 1}
    assert set(labels) <= {"Dispatch", "Tail", "After a sync", "Queued", "Host stall"}
    total = sum(arrays["width"]) * 128 / 16
    # the window is the step; the kernel and the copy take 40 µs of it
    assert total == pytest.approx(60 * US, abs=100)


def test_tracks_come_in_the_order_they_were_asked_for(client: Client) -> None:
    copies, steps = client.track("Stream 20")["id"], client.track("Steps")["id"]

    header, _ = decoded(client.tile(level=7, tile=0, tracks=f"{copies},{steps},{copies}"))

    assert [row["track"] for row in header["rows"]] == [copies, steps]


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"level": 99, "tile": 0}, 400, "level is 0 to 44"),
        ({"level": -1, "tile": 0}, 400, "level is 0 to 44"),
        ({"level": 3, "tile": -1}, 400, "tile is 0 or more"),
        ({"level": 3, "tile": 0, "tracks": "a"}, 400, "separated by commas"),
        ({"level": 3, "tile": 0, "tracks": "1,,2"}, 400, "separated by commas"),
        ({"level": 3, "tile": 0, "tracks": "99"}, 404, "there is no track 99"),
        ({"level": 3}, 400, "tile"),
    ],
)
def test_a_tile_that_cannot_be_is_refused(
    client: Client, parameters: dict[str, Any], status: int, words: str
) -> None:
    assert words in client.tile(status, **parameters)["message"]


def test_tiles_behind_the_end_are_empty(client: Client) -> None:
    for number in (100, 10**9, 10**18, 2**62):
        header, _ = decoded(client.tile(level=44, tile=number))
        assert header["rows"] == []


def test_a_counter_holds_its_value_until_the_next(client: Client) -> None:
    track = client.track("CUDA 0 memory allocated")["id"]

    answer = client.get("counters", track=track, level=7, tile=0)

    assert (answer["unit"], answer["bucket_ns"], answer["start_ns"]) == ("bytes", 512, 0)
    assert (answer["least"], answer["most"]) == (0, 512)
    first, fall = 22 * US // 512, 72 * US // 512
    assert answer["last"][first - 1 : first + 1] == [None, 512]
    assert (answer["min"][fall], answer["max"][fall], answer["last"][fall]) == (0, 512, 0)
    assert answer["max"][first : fall + 1] == [512] * (fall - first + 1)
    assert answer["last"][fall + 1 :] == [None] * (255 - fall)


def test_a_devices_busy_share_is_exact(client: Client) -> None:
    track = client.track("Busy")["id"]

    answer = client.get("counters", track=track, level=7, tile=0)

    busy_ns = sum(share * 512 for share in answer["last"] if share is not None)
    assert busy_ns == pytest.approx(40 * US)
    assert (answer["least"], answer["most"], answer["unit"]) == (0, 1, "share")


def test_efficiency_is_of_the_blocks_of_all_kernels_at_a_time(tmp_path: Path) -> None:
    client = asking(
        tmp_path,
        (
            ["kernel", "half", 0, 40, {"stream": 7, "blocks per SM": 0.5}],
            ["kernel", "quarter", 10, 10, {"stream": 20, "blocks per SM": 0.25}],
            ["kernel", "many", 30, 10, {"stream": 20, "blocks per SM": 8}],
            ["kernel", "untold", 50, 10, {"stream": 20, "blocks per SM": 0}],
        ),
    )
    track = client.track("SM efficiency")["id"]

    answer = client.get("counters", track=track, level=7, tile=0)

    busy_ns = sum(share * 512 for share in answer["last"] if share is not None)
    assert busy_ns == pytest.approx((10 * 0.5 + 10 * 0.75 + 10 * 0.5 + 10 * 1) * US)
    at = {us: answer["last"][us * US // 512] for us in (5, 15, 25, 35)}
    assert at == {
        us: pytest.approx(share) for us, share in ((5, 0.5), (15, 0.75), (25, 0.5), (35, 1))
    }
    assert answer["last"][45 * US // 512] is None


def test_what_is_no_counter_has_no_values(client: Client) -> None:
    answer = client.get("counters", 404, track=client.track("Steps")["id"], level=7, tile=0)

    assert "is no counter" in answer["message"]


def test_a_kernel_is_linked_to_its_launch_and_operator(client: Client) -> None:
    answer = client.get(f"slices/{EVENTS['gemm']}")

    links = [(link["kind"], link["name"], link["event"]) for link in answer["links"]]
    assert links == [
        ("launched by", "cudaLaunchKernel", 3),
        ("launched by operator", "aten::mm", 2),
    ]
    assert answer["operator"] == {"event": 2, "name": "aten::mm", "category": "cpu"}
    assert (answer["step"], answer["category"], answer["self_ns"]) == (3, "kernel", None)
    assert {"key": "stream", "value": 7, "is_cut": False} in answer["arguments"]
    assert (answer["start_ns"], answer["duration_ns"]) == (40 * US, 30 * US)


def test_an_operator_tells_what_it_launched_and_what_is_around_it(client: Client) -> None:
    answer = client.get(f"slices/{EVENTS['aten::linear']}")

    assert [parent["name"] for parent in answer["parents"]] == ["ProfilerStep#3"]
    inner = client.get(f"slices/{EVENTS['aten::mm']}")
    around = [EVENTS["ProfilerStep#3"], EVENTS["aten::linear"]]
    assert [parent["event"] for parent in inner["parents"]] == around
    assert (answer["child_count"], answer["self_ns"], answer["device_ns"]) == (1, 20 * US, 30 * US)
    assert [(link["kind"], link["name"]) for link in answer["links"]] == [("launches", "gemm")]
    assert answer["arguments"] == [{"key": "Input Dims", "value": "[[8,8]]", "is_cut": False}]


def test_events_that_are_no_slices_are_not_found(client: Client) -> None:
    for event in (10**6, -1, 2**40):
        assert client.get(f"slices/{event}", 404)["code"] == "not-found"
    assert client.get(f"slices/{EVENTS['[memory]']}", 422)["code"] == "not-recorded"


def test_a_search_finds_names_in_any_letters_through_the_whole_recording(client: Client) -> None:
    answer = client.get("search", q="MEMCPY")

    assert answer["total"] == 2
    assert [(hit["name"], hit["event"], hit["category"]) for hit in answer["hits"]] == [
        ("cudaMemcpyAsync", 4, "runtime"),
        ("Memcpy DtoH", 6, "memcpy"),
    ]
    assert sum(answer["density"]) == 2
    width_ns = 100 * US // 1000 + 1
    bins = [place for place, count in enumerate(answer["density"]) if count]
    assert bins == [60 * US // width_ns, 80 * US // width_ns]


def test_a_search_may_ask_for_the_very_letters(client: Client) -> None:
    assert client.get("search", q="MEMCPY", case="true")["total"] == 0
    assert client.get("search", q="Memcpy D", case="true")["total"] == 1


def test_hits_come_by_pages(client: Client) -> None:
    answer = client.get("search", q="a", limit=2, offset=1)
    whole = client.get("search", q="a")

    assert answer["hits"] == whole["hits"][1:3]
    assert answer["total"] == len(whole["hits"])


def test_a_search_is_gone_on_with_from_a_time_and_says_how_many_come_before(client: Client) -> None:
    whole = client.get("search", q="a")
    third = whole["hits"][2]
    answer = client.get("search", q="a", limit=1, start_ns=third["start_ns"])
    before = sum(hit["start_ns"] < third["start_ns"] for hit in whole["hits"])
    assert (answer["total"], answer["first"]) == (whole["total"], before)
    assert answer["hits"] == whole["hits"][before : before + 1]
    following = client.get("search", q="a", limit=1, start_ns=third["start_ns"], offset=1)
    assert following["hits"] == whole["hits"][before + 1 : before + 2]


def test_behind_the_last_hit_nothing_is_found(client: Client) -> None:
    answer = client.get("search", q="a", start_ns=2**62, offset=5)
    assert (answer["first"], answer["hits"]) == (answer["total"], [])


def test_a_search_finds_arguments(client: Client) -> None:
    def found(text: str) -> list[str]:
        return [hit["name"] for hit in client.get("search", q=text)["hits"]]

    assert found("stream:20") == ["Memcpy DtoH"]
    assert found("Stream: 7") == ["gemm"]
    assert found("bytes:") == ["Memcpy DtoH"]
    assert found("input dims:8,8") == ["aten::linear"]
    assert found("stream:x") == []
    assert found("aten::") == ["aten::linear", "aten::mm"]


def test_a_search_takes_expressions(client: Client) -> None:
    answer = client.get("search", q=r"^aten::(mm|bmm)$", regex="true")

    assert [hit["name"] for hit in answer["hits"]] == ["aten::mm"]


@pytest.mark.parametrize(
    "expression",
    [
        r"(a)\1",
        "(?!aten)",
        "((a?){25}){25}",
        "a" * 500,
        "(",
        "a{1,9999999999}",
    ],
)
def test_expressions_that_are_not_supported_too_large_or_none_are_refused(
    client: Client, expression: str
) -> None:
    assert client.get("search", 400, q=expression, regex="true")["code"] == "bad-request"


def test_an_expression_that_backtracks_for_ever_elsewhere_is_answered_at_once(
    tmp_path: Path,
) -> None:
    row = ["cpu_op", "a" * 250, 10, 40]
    client = asking(tmp_path, (row,))

    assert client.get("search", q="a?" * 13 + "a*a*a*b", regex="true")["total"] == 0
    assert client.get("search", q="a?" * 13 + "a*a*a*a$", regex="true")["total"] == 1


def test_unreadable_names_are_shown_readable(tmp_path: Path) -> None:
    path = tmp_path / "log" / "run" / "worker.1.pt.trace.json"
    path.parent.mkdir(parents=True)
    counter = {"ph": "C", "name": "c\ud800", "pid": 1, "ts": 2, "args": {"v\ud800": 3}}
    operator = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    hints = json.dumps({"model": "m\ud800"})
    path.write_text(json.dumps({"stepscope": hints, "traceEvents": [operator, counter]}))
    app = client_of(tmp_path / "log")
    client = Client(app)

    assert client.track("c?: v?")["kind"] == "counter"
    [run] = app.get("/api/runs").get_json()["runs"]
    trace = run["workers"][0]["spans"][0]["trace"]
    for address in ("tables/counters", "tables/counter-samples", "overview", "timeline/names"):
        response = app.get(f"/api/traces/{trace}/{address}")
        assert response.status_code == 200, (address, response.get_data(as_text=True))


def test_nothing_cannot_be_searched_for(client: Client) -> None:
    assert client.get("search", 400, q="")["code"] == "bad-request"
    assert client.get("search", 400, q="a", limit=10**9)["code"] == "bad-request"


def test_arrow_keys_lead_to_the_slices_around(client: Client) -> None:
    def beside(event: int, direction: str) -> str | None:
        return name(client.get("neighbour", event=event, direction=direction))

    linear = EVENTS["aten::linear"]
    assert [beside(linear, each) for each in ("left", "right", "up", "down")] == [
        None, "cudaMemcpyAsync", "ProfilerStep#3", "aten::mm",
    ]  # fmt: skip
    assert client.get("neighbour", 400, event=linear, direction="back")["code"] == "bad-request"


def test_the_slice_at_a_moment_is_the_one_that_runs_or_the_nearest(client: Client) -> None:
    track = client.track("Main thread")["id"]

    def name_at(row: int, us: int) -> str | None:
        return name(client.get("at", track=track, row=row, time_ns=us * US))

    assert [name_at(1, us) for us in (0, 30, 54, 56, 99)] == [
        "aten::linear", "aten::linear", "aten::linear", "cudaMemcpyAsync", "cudaMemcpyAsync",
    ]  # fmt: skip
    assert name_at(17, 0) is None


def test_slices_of_a_track_are_listed_by_start(client: Client) -> None:
    track = client.track("Main thread")["id"]

    answer = client.get("slices", track=track, start_ns=22 * US, end_ns=61 * US, limit=3)

    assert answer["total"] == 5
    assert [hit["name"] for hit in answer["hits"]] == ["ProfilerStep#3", "aten::linear", "aten::mm"]
    assert client.get("slices", 400, track=track, start_ns=5, end_ns=5)["code"] == "bad-request"


def test_times_beyond_all_time_are_as_good_as_the_end(client: Client) -> None:
    track = client.track("Main thread")["id"]

    last = client.get("at", track=track, row=1, time_ns=10**18)
    assert name(last) == name(client.get("at", track=track, row=1, time_ns=2**70))
    whole = client.get("slices", track=track, start_ns=-(2**70), end_ns=2**70)
    assert whole["total"] == 5
    answer = client.get("area", start_ns=-(2**70), end_ns=2**70, tracks=track)
    assert answer["tracks"][0]["busy_ns"] == 100 * US
    assert client.get("area", 400, start_ns=2**70, end_ns=2**71)["code"] == "bad-request"


def test_idle_causes_of_an_area_are_summed_too(client: Client) -> None:
    track = client.track("Idle")["id"]

    answer = client.get("area", start_ns=0, end_ns=40 * US, tracks=track)

    assert sum(answer["table"]["values"]["total_ns"]) == 40 * US
    assert answer["tracks"] == [
        {
            "track": track,
            "busy_ns": 40 * US,
            "idle_ns": 0,
            "slice_count": len(answer["table"]["values"]["name"]),
        }
    ]


def test_an_area_sums_what_is_in_it(client: Client) -> None:
    tracks = [client.track(label)["id"] for label in ("Main thread", "Stream 7")]

    answer = client.get("area", start_ns=15 * US, end_ns=55 * US, tracks=",".join(map(str, tracks)))

    table = answer["table"]["values"]
    rows = dict(
        zip(table["name"], zip(table["total_ns"], table["self_ns"], strict=True), strict=True)
    )
    assert rows == {
        "ProfilerStep#3": (40 * US, 5 * US),
        "aten::linear": (35 * US, 15 * US),
        "aten::mm": (20 * US, 15 * US),
        "cudaLaunchKernel": (5 * US, 5 * US),
        "gemm": (15 * US, None),
    }
    assert answer["tracks"] == [
        {"track": tracks[0], "busy_ns": 40 * US, "idle_ns": 0, "slice_count": 4},
        {"track": tracks[1], "busy_ns": 15 * US, "idle_ns": 25 * US, "slice_count": 1},
    ]


def test_an_area_has_the_share_and_the_extremes_of_each_name(tmp_path: Path) -> None:
    rows: tuple[tracebuild.Row, ...] = (
        ["cpu_op", "aten::mm", 0, 40],
        ["cpu_op", "aten::mm", 50, 10],
        ["user_annotation", "loop", 0, 100],
        ["user_annotation", "loop", 5, 20],
    )
    client = asking(tmp_path, rows)
    track = client.track("Main thread")["id"]

    table = client.get("area", start_ns=20 * US, end_ns=100 * US, tracks=track)["table"]["values"]
    columns = ("share", "total_ns", "min_ns", "mean_ns", "max_ns")
    by_name = dict(
        zip(table["name"], zip(*(table[key] for key in columns), strict=True), strict=True)
    )
    assert by_name == {
        "aten::mm": (30 / 80, 30 * US, 10 * US, 25 * US, 40 * US),
        # A call in a call of the same name takes no time of its own.
        "loop": (1.0, 85 * US, 20 * US, 60 * US, 100 * US),
    }


def test_what_began_before_the_first_event_is_told_as_it_was_recorded(tmp_path: Path) -> None:
    rows: tuple[tracebuild.Row, ...] = (
        ["Trace", "PyTorch Profiler (0)", 0, 100],
        ["cpu_op", "aten::mm", 30, 50],
    )
    client = asking(tmp_path, rows)

    answer = client.get("slices/0")
    assert (answer["start_ns"], answer["duration_ns"]) == (-30 * US, 100 * US)
    [drawn] = client.get("slices", track=answer["track"], start_ns=0, end_ns=US)["hits"]
    assert (drawn["start_ns"], drawn["duration_ns"]) == (0, 70 * US)


def test_children_that_cross_are_taken_from_a_slice_once(tmp_path: Path) -> None:
    rows: tuple[tracebuild.Row, ...] = (
        ["cpu_op", "outer", 0, 100],
        ["user_annotation", "first", 10, 50],
        ["user_annotation", "second", 40, 50],
    )
    client = asking(tmp_path, rows)
    track = client.track("Main thread")["id"]

    table = client.get("area", start_ns=0, end_ns=100 * US, tracks=track)["table"]["values"]
    own = dict(zip(table["name"], table["self_ns"], strict=True))
    told = {row[1]: client.get(f"slices/{place}")["self_ns"] for place, row in enumerate(rows)}
    assert own == told == {"outer": 20 * US, "first": 50 * US, "second": 50 * US}


def test_a_recording_of_nothing_has_an_empty_timeline(tmp_path: Path) -> None:
    client = asking(tmp_path, (["cpu_instant_event", "[memory]", 5, None, {"Bytes": 1}],))

    answer = client.get("tracks")
    assert (answer["steps"], answer["end_ns"]) == ([], 0)
    assert [track for track in answer["tracks"] if track["row_count"]] == []
    assert decoded(client.tile(level=9, tile=0))[0]["rows"] == []
    assert client.get("search", q="a")["total"] == 0


def test_what_lasts_for_ever_or_less_than_nothing_is_drawn(tmp_path: Path) -> None:
    client = asking(
        tmp_path,
        (
            ["cpu_op", "aten::add", 5, -3],
            ["cpu_op", "aten::mul", 5, 0],
            ["cpu_op", "aten::mm", 10, 10**13],
        ),
    )

    answer = client.get("tracks")

    assert answer["end_ns"] == 2**53 - 1
    assert "cut at 104 days" in answer["note"]
    header, _ = decoded(client.tile(level=44, tile=0))
    assert sum(row["count"] for row in header["rows"]) == 2  # two of no time are one item


def test_two_who_ask_at_once_have_it_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(ROWS)
    made = []
    barrier = Barrier(2)

    def counting(of: Any) -> Any:
        made.append(of)
        return making(of)

    making = track_events
    monkeypatch.setattr(timelines, "track_events", counting)
    answers: list[Any] = []

    def ask() -> None:
        barrier.wait()
        answers.append(timeline(trace))

    threads = [Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(made) == 1
    assert answers[0] is answers[1]
