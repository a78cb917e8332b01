"""Recording inside a training: trace handler, schedules, callbacks and `stepscope record`.

Nothing here imports torch, numpy or pandas before a span is saved: `import stepscope` stays light,
and a training process loads no module that it does not use.
"""

from stepscope.recording.handler import TraceHandler, trace_handler
from stepscope.recording.live_objects import Given
from stepscope.recording.schedules import Schedule, schedule_for

__all__ = ["Given", "Schedule", "TraceHandler", "schedule_for", "trace_handler"]
