"""Remedies for traces of `stepscope record`: its options, since the script has no profiler call.

"stepscope_recorder": {…, "command": "stepscope record"}
"""

import re

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace

SUBJECT = "command"
COMMAND = "stepscope record"
OPTIONS = {
    "record_shapes=True": "--shapes",
    "with_stack=True": "--with-stack",
    "profile_memory=True": "--memory",
}
"""Option of the command by argument of `torch.profiler.profile`."""
PROFILE_CALL = re.compile(r"torch\.profiler\.profile\(\.\.\., (?P<arguments>[\w=, ]+)\)")


def is_of_command(trace: Trace) -> bool:
    """Return whether `stepscope record` recorded the trace."""
    return metadata_mapping(trace, KEY).get(SUBJECT) == COMMAND


def command(*options: str) -> str:
    """Return the command with these options, for a script."""
    return " ".join((COMMAND, *options, "-- python train.py"))


def remedy_for(trace: Trace, remedy: str) -> str:
    """Return a remedy as an option of the command if the command recorded the trace."""
    call = PROFILE_CALL.fullmatch(remedy)
    if call is None or not is_of_command(trace):
        return remedy
    arguments = call["arguments"].split(", ")
    if not OPTIONS.keys() >= set(arguments):
        return remedy
    return command(*(OPTIONS[argument] for argument in arguments))
