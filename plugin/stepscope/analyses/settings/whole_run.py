"""A recording of `stepscope record` without steps, of a program that takes none.

    "stepscope_recorder": {…, "whole_run": {"model_calls": 240}}

Calls of a model in the trace are its outermost ones, in all threads.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.setting_kinds import as_count
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace, computed

SUBJECT = "whole_run"


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """A time of a program without steps."""

    model_calls: int
    """0: none, or they were not counted."""


@computed
def whole_run(trace: Trace) -> WholeRun | None:
    """Return the recording; None where the recorder wrote none without steps."""
    facts = metadata_mapping(trace, KEY).get(SUBJECT)
    if not isinstance(facts, Mapping):
        return None
    return WholeRun(model_calls=as_count(facts.get("model_calls")) or 0)
