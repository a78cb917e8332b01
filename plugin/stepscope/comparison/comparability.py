"""Comparability of two sides: the differences between them that change the step by themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope.base.formatting import capitalized, count, duration, share
from stepscope.comparison.likeness import SAME_MODEL, Likeness, likeness, operator_profile
from stepscope.comparison.messages import Comparability, Comparable
from stepscope.comparison.samples import Sample
from stepscope.comparison.side import side_samples

DEVICE, KIND_OF_DEVICE = "the device", "the kind of device"
PROFILER_FLAGS = ("record_shapes", "with_stack", "profile_memory")
MOST_NAMED = 3
Traces = Sequence[Sample]


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """A difference between two sides."""

    text: str
    """A sentence."""
    short: str
    """The difference in a list of several."""
    is_decisive: bool = False
    """Whether the steps are not comparable with it."""


def comparability(before: Traces, after: Traces) -> Comparability:
    """Return whether the steps of two sides are comparable, and why not."""
    like = _likeness(before, after)
    return _comparability(like, list(_differences(before, after, like)))


def comparability_phrase(before: Traces, after: Traces) -> tuple[Comparability, str]:
    """Return the comparability, and likeness and differences as a list.

    The list: `same device, models 96 % alike, batch size 32 vs 64`.
    """
    like = _likeness(before, after)
    differences = list(_differences(before, after, like))
    devices = devices_of(before), devices_of(after)
    is_same_device = devices[0] == devices[1] and devices[0] != ""
    parts = [
        "same device" if is_same_device else "",
        "" if like is None else f"models {share(like.value)} alike",
        *(difference.short for difference in differences),
    ]
    return _comparability(like, differences), ", ".join(filter(None, parts))


def _comparability(like: Likeness | None, differences: Sequence[_Difference]) -> Comparability:
    decisive = tuple(of.text for of in differences if of.is_decisive)
    others = tuple(of.text for of in differences if not of.is_decisive)
    level: Comparable = "not-comparable" if decisive else "with-care" if others else "comparable"
    value = None if like is None else like.value
    return Comparability(level=level, reasons=decisive, cautions=others, likeness=value)


def devices_of(traces: Traces) -> str:
    """Return the names of the traces' devices, else their kind, else an empty text."""
    return _condition(traces, DEVICE) or _condition(traces, KIND_OF_DEVICE)


def _likeness(before: Traces, after: Traces) -> Likeness | None:
    return likeness(operator_profile(before), operator_profile(after))


def _differences(before: Traces, after: Traces, like: Likeness | None) -> Iterator[_Difference]:
    yield from _of_devices(before, after)
    yield from _of_models(like)
    yield from _of_passes(before, after, like)
    yield from _of_batches(before, after, like)
    yield from _of_ranks(before, after)
    yield from _of_conditions(before, after)
    yield from _of_settings(before, after)


def _of_devices(before: Traces, after: Traces) -> Iterator[_Difference]:
    for name in (KIND_OF_DEVICE, DEVICE):
        was, now = _condition(before, name), _condition(after, name)
        if was and now and was != now:
            yield _Difference(
                text=f"The devices are different: {was} before, {now} after.",
                short=f"device {was} vs {now}",
                is_decisive=True,
            )
            return


def _of_models(like: Likeness | None) -> Iterator[_Difference]:
    if like is not None and like.value < SAME_MODEL:
        yield _Difference(
            text=(
                f"The models are different: by operators and parameters they are"
                f" {share(like.value)} alike (the same model: at least {share(SAME_MODEL)})."
            ),
            short="another model",
            is_decisive=True,
        )


def _of_passes(before: Traces, after: Traces, like: Likeness | None) -> Iterator[_Difference]:
    if _are_steps_alike(before, after, like) or not _have_steps(before, after):
        return
    if like is not None and like.value >= SAME_MODEL:
        numbers = map(round, like.pass_counts)
        was, now = (count(number, "backward pass", "backward passes") for number in numbers)
        yield _Difference(
            text=f"A step has {was} before and {now} after (gradient accumulation).",
            short=f"{was} vs {now} per step",
        )


def _have_steps(before: Traces, after: Traces) -> bool:
    return all(trace.has_steps for side in (before, after) for trace in side)


def _are_steps_alike(before: Traces, after: Traces, like: Likeness | None) -> bool:
    """Return whether a step has as many passes through the model on both sides."""
    is_equal = like is None or round(like.pass_counts[0]) == round(like.pass_counts[1])
    return is_equal and _have_steps(before, after)


def _of_batches(before: Traces, after: Traces, like: Likeness | None) -> Iterator[_Difference]:
    sizes = [_joined({str(trace.batch_size) for trace in side}) for side in (before, after)]
    if sizes[0] == sizes[1] or any("None" in size for size in sizes):
        return
    text = f"The batch size was {sizes[0]} and is {sizes[1]}."
    if all(size.isdecimal() for size in sizes) and _are_steps_alike(before, after, like):
        was, now = (
            duration(float(side_samples("", side).durations().mean()) / int(size))
            for side, size in zip((before, after), sizes, strict=True)
        )
        text = text.rstrip(".") + (
            f": compare the time per sample, {was} before and {now} after, instead of the step."
        )
    yield _Difference(text=text, short=f"batch size {sizes[0]} vs {sizes[1]}", is_decisive=True)


def _of_ranks(before: Traces, after: Traces) -> Iterator[_Difference]:
    ranks = [len({trace.worker for trace in side}) for side in (before, after)]
    if ranks[0] != ranks[1]:
        was, now = (count(number, "worker") for number in ranks)
        yield _Difference(
            text=f"There {'is' if ranks[0] == 1 else 'are'} {was} before and {now} after.",
            short=f"{was} vs {now}",
        )


def _of_conditions(before: Traces, after: Traces) -> Iterator[_Difference]:
    names = dict.fromkeys(
        name for side in (before, after) for trace in side for name in trace.conditions
    )
    for name in names:
        if name in {DEVICE, KIND_OF_DEVICE}:
            continue
        was, now = _condition(before, name), _condition(after, name)
        if was != now and was and now:
            is_flag = name in PROFILER_FLAGS
            cost = " This changes the profiler's overhead." if is_flag else ""
            text = f"{name} was {was} and is {now}.{cost}"
            yield _Difference(
                text=text if is_flag else capitalized(text),
                short=f"{name.removeprefix('the ')} {was} vs {now}",
            )


def _of_settings(before: Traces, after: Traces) -> Iterator[_Difference]:
    if not all(any(trace.settings for trace in side) for side in (before, after)):
        return
    labels = {
        key: label
        for side in (before, after)
        for trace in side
        for key, (label, _) in trace.settings.items()
    }
    differing = [
        label for key, label in labels.items() if _settings(before, key) != _settings(after, key)
    ]
    if differing:
        more = len(differing) - MOST_NAMED
        named = "; ".join(differing[:MOST_NAMED]) + (f"; {more} more" if more > 0 else "")
        verb = "differs" if len(differing) == 1 else "differ"
        number = count(len(differing), "recorded setting")
        yield _Difference(text=f"{number} {verb}: {named}.", short=f"{number} {verb}")


def _settings(traces: Traces, key: str) -> set[str]:
    return {trace.settings[key][1] for trace in traces if key in trace.settings}


def _condition(traces: Traces, name: str) -> str:
    return _joined({trace.conditions[name] for trace in traces if name in trace.conditions})


def _joined(values: set[str]) -> str:
    return " or ".join(sorted(values))
