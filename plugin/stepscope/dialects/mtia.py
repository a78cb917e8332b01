"""Meta: MTIA's names.

From one real trace (an inference of 2026 on ARTEMIS, in HolisticTraceAnalysis' test data), the rest
from kineto's list of activities. `mtia_ccp_events` contains all device events: work, requests of
the DMA engine, and waits for other streams, which are not work. `mtia_runtime` contains the host's
calls and, on the device's own rows, `synchronize`: the same waits again. `mtia_insight` and
`mtia_counters` contain measurements. Direction and `size` of copies are arguments.
"""

import re
from types import MappingProxyType

from stepscope.dialects import Dialect, Kind

DIALECT = Dialect(
    name="mtia",
    device="MTIA",
    vendor="Meta",
    signature=re.compile(r"^mtia_runtime/"),
    kinds=MappingProxyType(
        {
            "mtia_ccp_events": (
                (re.compile(r"^dma_request$"), Kind.COPY),
                (re.compile(r"^event_(?:wait|record)$"), Kind.SYNCHRONIZATION),
            ),
            "mtia_runtime": ((re.compile(r"^synchronize$"), Kind.SYNCHRONIZATION),),
        }
    ),
    device_name=re.compile(r"\b(?:MTIA|ARTEMIS)\b"),
    blocking_call=re.compile(r"^synchronize(?:Stream|Device|Event)$"),
    memory_device_types=frozenset({19}),
    terms=MappingProxyType({"module": "mtia", "activity": "ProfilerActivity.MTIA"}),
)
