"""The cost of recorded events follows from trainings with and without the profiler."""

from dataclasses import replace

import pytest

from benchmarks.event_costs import Recording, errors, fitted

COSTS_NS = (500.0, 400.0, 150.0, 600.0, 0.0)
SLOWDOWN = 0.1


def recording(training: str, *events: float, plain_ns: float = 1e7) -> Recording:
    more_ns = sum(count * cost for count, cost in zip(events, COSTS_NS, strict=True))
    return Recording(
        training=training,
        options="",
        events=events,
        plain_ns=plain_ns,
        recorded_ns=(plain_ns + more_ns) / (1 - SLOWDOWN),
        measured_share=0.0,
    )


RECORDINGS = [
    recording("one", 1000, 0, 0, 0, 0),
    recording("one", 1000, 900, 0, 0, 300),
    recording("two", 2000, 1800, 1900, 700, 0, plain_ns=3e6),
    recording("two", 2000, 0, 1900, 900, 0, plain_ns=3e6),
    recording("three", 400, 350, 380, 500, 200, plain_ns=1e6),
    recording("three", 400, 0, 380, 100, 0, plain_ns=1e6),
    recording("four", 700, 650, 0, 0, 500, plain_ns=5e6),
]


def test_costs_that_explain_all_differences_are_met() -> None:
    *costs_ns, slowdown = fitted(RECORDINGS)
    assert costs_ns == pytest.approx(COSTS_NS, abs=5.0)
    assert slowdown == pytest.approx(SLOWDOWN, abs=0.001)


def test_other_trainings_predict_one_training() -> None:
    assert errors(RECORDINGS) == pytest.approx([0.0] * len(RECORDINGS), abs=0.1)


def test_no_event_saves_time() -> None:
    faster = [replace(one, recorded_ns=0.9 * one.plain_ns) for one in RECORDINGS]
    assert fitted(faster).tolist() == [0.0] * (len(COSTS_NS) + 1)
