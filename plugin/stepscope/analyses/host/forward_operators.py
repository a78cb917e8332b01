"""The operator whose stack torch gives to a backward call: `EventList._set_backward_stacktraces`.

That is the first operator of its sequence number on the thread that `Fwd thread id` numbers. It may
be one that ran before the operator that the call is the backward of; `forward_backward` has that.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.links import rows_of_keys
from stepscope.model.trace import Trace

NONE = -1


def forward_operators(
    trace: Trace, backward: NDArray[np.int64], forward: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each backward call, the forward one that it belongs to, or -1.

    All are rows of `host_calls`; `forward` are those that it may be, in the order they began.
    """
    calls = trace.host_calls
    sequence = calls["sequence_number"].to_numpy()
    forward = forward[sequence[forward] >= 0]
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    number = trace.source.whole("Fwd thread id", calls["event"].to_numpy()[backward])
    wanted = sequence[backward]
    asked = (wanted >= 0) & (number > 0)
    known = np.full(len(backward), NONE, dtype=np.int64)
    known[asked] = _threads(
        number[asked], rows_of_keys(wanted[asked], sequence[forward]), thread[forward]
    )
    place, distinct = pd.factorize(sequence[forward])
    width = int(thread.max(initial=0)) + 1
    keys = np.where(known >= 0, rows_of_keys(wanted, distinct) * width + known, NONE)
    found = rows_of_keys(keys, place * width + thread[forward])
    return np.append(forward, NONE)[found]


def _threads(
    number: NDArray[np.int64], place: NDArray[np.int64], thread: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the thread that each number means: where most of its calls find their sequence."""
    votes = pd.DataFrame({"number": number, "thread": np.append(thread, NONE)[place]})
    counted = votes[votes["thread"] >= 0].value_counts().reset_index()
    most = counted.drop_duplicates("number").set_index("number")["thread"]
    return most.reindex(number, fill_value=NONE).to_numpy().astype(np.int64)
