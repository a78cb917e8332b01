"""Too few steps to distinguish a pattern from an accident."""

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.whole_run import whole_run
from stepscope.base.formatting import count
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts

NO_STEPS = "the recorder found no steps in the program"


class Options(Thresholds):
    """Thresholds of the number of steps."""

    least_steps: int = option(
        3, "Steps recorded whole.", origin="ours: two cannot show which of them is the odd one"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report traces without steps, or with fewer than `least_steps`."""
    steps = window(trace).step_count
    requirements.applies_if(steps or whole_run(trace) is None, NO_STEPS)
    if steps >= options.least_steps:
        return
    message = (
        f"Only {count(steps, 'step was', 'steps were')} recorded: figures per step rest on "
        f"{'it' if steps == 1 else 'them'} alone, and no finding has high confidence."
        if steps
        else "No step was marked: all figures are of the whole trace, and no finding has high "
        "confidence."
    )
    yield Finding(
        severity="info", message=message, evidence=(facts.count("Steps", steps, "overview"),)
    )


RULE = Rule(
    id="weak-step-coverage",
    title="Too few steps were recorded",
    passed="The trace has enough complete steps",
    category="profiling",
    why=("Only steps show the duration of an iteration and its variation; the first ones warm up."),
    fix=Fix(
        "Record at least three steps behind a warm-up, and say where each ends.",
        "with torch.profiler.profile(\n"
        "    schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),\n"
        '    on_trace_ready=torch.profiler.tensorboard_trace_handler("log/run"),\n'
        ") as prof:\n"
        "    for batch in loader:\n"
        "        train_step(batch)\n"
        "        prof.step()",
        verify="Overview shows at least three steps.",
    ),
    detects="The steps that were recorded whole. It reports below `least_steps`; from there on "
    "findings may have high confidence.",
    saving="None: it is about the trace, not about the program.",
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority="symptom",
    is_symptom=True,
    links=("profiler.html#torch.profiler.schedule",),
    origin="21 of 100 public traces have no step; one-step traces are as common",
)
