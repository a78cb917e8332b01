"""Operators on the CPU compute with far fewer threads than CPUs, or with far more."""

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import FEWER_THREADS, MORE_THREADS, part_of
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

LONG_NS = 100_000
"""Shorter operators are computed by one thread, or hardly faster by several."""
VARIABLE = "OMP_NUM_THREADS"
RECORD = "on_trace_ready=stepscope.trace_handler(...)"


class Options(Thresholds):
    """Thresholds of the threads."""

    least_cpus: float = option(
        4.0, "CPUs per thread.", origin="ours: most CPUs compute nothing, as with OMP_NUM_THREADS=1"
    )
    least_threads: float = option(
        2.0, "Threads per CPU.", origin="ours: half of the threads wait for a CPU"
    )
    least_share: float = option(
        0.2,
        "Fraction of the window in operators of 100 µs or more.",
        origin="ours: short operators run on one thread",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report a number of torch's threads that does not fit the CPUs of this process."""
    requirements.applies_if(not len(trace.device_events), "a device computes")
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    settings = recorded_settings(trace)
    threads, usable = settings.host.thread_count, settings.host.usable_cpu_count
    requirements.conclusive_if(
        threads and usable, "the numbers of threads and CPUs were not recorded", RECORD
    )
    assert threads  # noqa: S101 (conclusive_if raises)
    assert usable  # noqa: S101
    ranks = settings.ranks_on_this_host
    workers = max((loader.worker_count or 0 for loader in settings.dataloaders), default=0)
    cpus = max(1, usable // ranks)
    is_few = cpus >= options.least_cpus * threads and not workers
    is_many = threads >= options.least_threads * cpus
    calls, span = trace.host_calls, window(trace)
    is_long = calls["is_operator"].to_numpy() & (calls["duration_ns"].to_numpy() >= LONG_NS)
    times = intervals.clip(frame_times.times(calls, is_long), span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(times)
    if phrases.fraction_of_window(trace, time_ns) < options.least_share:
        return
    if not is_few and not is_many:
        return
    setting = settings.environment.get(VARIABLE)
    factor = part_of(MORE_THREADS, 1 - threads / cpus) if is_few else FEWER_THREADS
    yield Finding(
        confidence="medium",
        message=f"torch computes with {count(threads, 'thread')} on {count(cpus, 'CPU')}"
        f"{f' of each of {ranks} ranks' if ranks > 1 else ''} ({RECORDED}"
        f"{f', {VARIABLE}={setting}' if setting else ''}): "
        f"{'most CPUs compute nothing' if is_few else 'threads wait for each other'}. Operators of "
        f"100 µs or more take {phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(
            facts.count("Threads of torch", threads),
            facts.count("CPUs per process", cpus),
            facts.duration("Time in operators of 100 µs or more in total", time_ns),
        ),
        claims=(
            Claim(
                times,
                factor,
                "Of operators of 100 µs or more, the part that more threads could take over."
                if is_few
                else "Of operators of 100 µs or more, the part in which threads wait.",
            ),
        ),
        fix=_fix(cpus),
    )


def _fix(cpus: int) -> Fix:
    return Fix(
        "Let torch compute with one thread per CPU.",
        f"torch.set_num_threads({cpus})    # or {VARIABLE}={cpus} in the environment",
        verify="The next trace's settings show the number of threads.",
        caveats=(
            "Leave a CPU to each DataLoader worker, and divide the CPUs among the ranks of a host.",
        ),
    )


RULE = Rule(
    id="cpu-thread-count",
    title="The number of threads does not fit the CPUs",
    passed="The number of threads fits the CPUs",
    category="host",
    why="An operator on the CPU divides its work among torch's threads. With one thread the other "
    "CPUs do nothing; with more threads than CPUs, all wait for the slowest. Launchers set "
    "OMP_NUM_THREADS=1, and each rank otherwise takes all CPUs of the host.",
    detects="The recorded number of torch's threads against the CPUs that the process may use, "
    "divided among the ranks of the host: `least_cpus` CPUs per thread (without DataLoader "
    "workers) or `least_threads` threads per CPU, where operators of 100 µs or more take "
    "`least_share` of the window.",
    silent=("Jobs that compute on a device.", "Fewer threads beside DataLoader workers."),
    saving="Of operators of 100 µs or more: with too few threads up to the fraction of idle CPUs, "
    "a third of it at least; with too many up to six tenths.",
    fix=_fix(8),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority="program",
    links=("threading_environment_variables.html",),
    origin="ours: torchrun sets OMP_NUM_THREADS=1",
    culprit="the number of threads",
)
