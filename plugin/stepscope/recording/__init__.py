"""Recording: what a training script calls, to write traces that hold what advice would else guess.

```
handler.py         trace_handler: saves each span, and never raises
schedules.py       schedule_for: which steps to record
settings.py        collect: the settings of this process, of which each span's file gets a copy
subjects/          one subject of the settings a file
autocast_watch.py  whether autocast is entered, where Python can tell
scene.py           the DataLoaders, optimizers and modules that are alive
writing.py         a file is written under another name, completed, and then renamed
```
Nothing here imports torch, numpy or pandas before a span is saved: `import stepscope` stays light,
and a training process is not given what it does not use.
"""

from stepscope.recording.handler import TraceHandler, trace_handler
from stepscope.recording.live_objects import Given
from stepscope.recording.schedules import Schedule, schedule_for

__all__ = ["Given", "Schedule", "TraceHandler", "schedule_for", "trace_handler"]
