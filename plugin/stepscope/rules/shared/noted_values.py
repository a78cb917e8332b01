"""Values of tensors that rules need, and claims of the operators noted with them."""

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.tensor_values import RECORD, TensorValues, tensor_values
from stepscope.base.calibration import Factor
from stepscope.base.errors import MissingDataError
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Trace


def require_values(trace: Trace) -> TensorValues:
    """Return the values that the recorder noted.

    Raises:
        NotApplicableError: no steps are marked.
        MissingDataError: no values were read.
    """
    requirements.applies_if(window(trace).has_steps, "no steps are marked")
    values = tensor_values(trace)
    if values is None:
        reason = "values of tensors were not read"
        raise MissingDataError(reason, RECORD)
    return values


def claims(times: Intervals, factor: Factor, method: str) -> tuple[Claim, ...]:
    """Return the claim of some times; none where the trace has no such operators."""
    return (Claim(times, factor, method),) if len(times) else ()
