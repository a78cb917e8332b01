"""Records of waits: what is missing, or written without a sign, is -1."""

from loading import rows_of, trace_of
from stepscope.model.frames.synchronization_events import SCHEMA, STREAM_WAIT

US = 1000


def test_a_record_names_who_waited_for_what() -> None:
    trace = trace_of(
        [
            [
                "cuda_sync",
                STREAM_WAIT,
                10,
                3,
                {
                    "wait_on_stream": 7,
                    "wait_on_cuda_event_record_corr_id": 5169,
                    "stream": 20,
                    "correlation": 5170,
                    "device": 1,
                },
            ],
            ["cuda_sync", "Context Sync", 0, 2, {"stream": 2**32 - 1, "correlation": 9}],
        ]
    )
    assert rows_of(trace.synchronization_events) == [
        (1, "Context Sync", 0, 2 * US, 2 * US, -1, -1, 9, -1, -1),
        (0, STREAM_WAIT, 10 * US, 3 * US, 13 * US, 1, 20, 5170, 7, 5169),
    ]


def test_a_trace_without_records_has_no_rows_but_all_columns() -> None:
    frame = trace_of([["cpu_op", "aten::mm", 0, 5]]).synchronization_events
    assert {str(name): str(dtype) for name, dtype in frame.dtypes.items()} == {
        column.name: column.dtype for column in SCHEMA
    }
    assert not len(frame)
