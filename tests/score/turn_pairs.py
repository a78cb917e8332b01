"""Pairs that ran in turns (`python -m pairs`): realised savings, and what the traces promised.

`pairs.json` stores what the accuracy page needs, one pair per line; `python -m score.pairs` writes
it from the traces in build/pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from pairs.result import PairResult
from score.ranges import Holds, Span, interval_score, judgement
from stepscope.base import calibration
from stepscope.base.calibration import Factor

FILE = Path(__file__).with_name("pairs.json")
MS = 1e6
SEEN_FAMILIES = frozenset(
    {
        "adversarial_images",
        "batchnorm_resnet",
        "ddp_accumulation",
        "ddp_images",
        "ddp_text",
        "diffusion_denoiser",
        "diffusion_sampler",
        "graph_network",
        "image_classifier",
        "image_server",
        "multi_task_vision",
        "object_detector",
        "recommender",
        "reinforcement_policy",
        "segmentation_unet",
        "sequence_rnn",
        "speech_encoder",
        "super_resolution",
        "tabular",
        "text_classifier",
        "variational_autoencoder",
    }
)
"""Families of jobs on which rules and factors were mended; the others judge them."""
Method = Literal["replay", "steps", "intervals"]
"""Simulated in the step without the profiler; in both steps; not simulated."""
Bounds = tuple[int, int]
"""Least and greatest saving per step, in nanoseconds."""


class RuleSaving(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Estimated saving of a rule's findings, per step of the run with the faults."""

    rule: str
    severity: str = ""
    position: int = 0
    """Position among the findings of the report, from 1; 0: no finding."""
    is_ruled_out: bool = False
    """Whether the report says that a suspicion of this rule costs nothing, with the numbers."""
    recorded: Bounds | None = None
    """In the step as recorded; None: no finding, or one without a claim."""
    unrecorded: Bounds | None = None
    """In the step without the profiler; None: unknown."""
    intervals: Bounds | None = None
    """Factor times claimed intervals, without a simulation; None: no finding by this method."""
    whole_ns: int | None = None
    """Simulated saving of all that the rule claims, alone, in the step without the profiler, by
    factors of 1; None: not simulated."""

    @property
    def replayed(self) -> Bounds | None:
        """The saving in the step without the profiler where it is known, else as recorded."""
        return self.unrecorded or self.recorded

    @property
    def in_steps(self) -> Bounds | None:
        """The least and the greatest saving in the two steps; the report states both savings."""
        known = [bounds for bounds in (self.unrecorded, self.recorded) if bounds]
        if not known:
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def by(self, method: Method) -> Bounds | None:
        """Return the estimate by a method."""
        if method == "intervals":
            return self.intervals
        return self.replayed if method == "replay" else self.in_steps


class StoredPair(msgspec.Struct, frozen=True, kw_only=True):
    """A pair's result, and the advice on its two traces."""

    result: PairResult
    savings: tuple[RuleSaving, ...]
    """Of the rules with a finding by either method, or that were ruled out, in the order of the
    report."""
    alarms: tuple[str, ...] = ()
    """Rules at warning or above on the fix, without those of faults that stay on."""
    unnamed: tuple[str, ...] = ()
    """Faults that no rule names."""


@dataclass(frozen=True, kw_only=True)
class TurnPair:
    """A stored pair, with its estimates compared to the realised saving; all per sample."""

    stored: StoredPair

    @property
    def result(self) -> PairResult:
        """Step times in turns."""
        return self.stored.result

    @property
    def name(self) -> str:
        """Name as on the command line: `family:fault+fault`."""
        return f"{self.result.family}:{'+'.join(self.result.faults)}"

    @property
    def is_seen(self) -> bool:
        """Whether rules were mended on pairs of this family: it is no independent test."""
        return self.result.family in SEEN_FAMILIES

    @property
    def before_ns(self) -> float:
        """Mean step with the faults, without the profiler."""
        return self.result.before_ms * MS

    @property
    def realised_ns(self) -> float:
        """Saving of the fix, without the profiler."""
        return self.result.saving_ms * MS

    @property
    def likely(self) -> Span:
        """95 % confidence interval of the realised saving, by turns."""
        error_ns = self.result.error_ms * MS
        return Span(low=self.realised_ns - error_ns, high=self.realised_ns + error_ns)

    def estimate(self, method: Method = "replay", *, has_all: bool = False) -> Span:
        """Return the estimated saving of the faults' rules, or of all findings; 0 without any."""
        bounds = [
            saving.by(method) or (0, 0)
            for saving in self.stored.savings
            if has_all or saving.rule in self.result.rules
        ]
        low, high = (sum(bound[index] for bound in bounds) for index in (0, 1))
        return Span(low=low, high=high).scaled(1 / self.result.samples[0])

    def holds(self, method: Method = "replay") -> Holds:
        """Return whether the estimate contains the realised saving."""
        return judgement(self.estimate(method), self.realised_ns, self.likely)

    @property
    def is_ruled_out(self) -> bool:
        """Whether the report says that the faults cost nothing: no estimate, with a reason."""
        of_rules = [e for e in self.stored.savings if e.rule in self.result.rules]
        has_finding = any(saving.position for saving in of_rules)
        return not has_finding and any(saving.is_ruled_out for saving in of_rules)

    def score(self, method: Method = "replay") -> float:
        """Return the interval score of the estimate, as a fraction of the step."""
        return interval_score(self.estimate(method), self.realised_ns) / self.before_ns

    @cached_property
    def is_own(self) -> bool:
        """Whether a factor was fitted on a pair of this family with one of these faults."""
        return bool(set(self.result.faults) & fitted_faults(self.result.family))


def fitted_faults(family: str) -> set[str]:
    """Return the faults of a family on whose pairs a factor was fitted (`Factor.pairs`)."""
    names = [name for factor in factors() for name in factor.pairs]
    return {
        fault
        for name in names
        if name.partition(":")[0] == family
        for fault in name.partition(":")[2].split("+")
    }


def factors() -> tuple[Factor, ...]:
    """Return all factors of `calibration`."""
    return tuple(value for value in vars(calibration).values() if isinstance(value, Factor))


def stored_pairs(path: Path = FILE) -> tuple[TurnPair, ...]:
    """Return the stored pairs, by name; none without the file."""
    if not path.exists():
        return ()
    stored = msgspec.json.decode(path.read_bytes(), type=list[StoredPair])
    return tuple(TurnPair(stored=pair) for pair in stored)


def encode(pairs: Sequence[StoredPair]) -> bytes:
    """Return the content of the file: one pair per line."""
    lines = b",\n".join(msgspec.json.encode(pair) for pair in pairs)
    return b"[\n" + lines + b"\n]\n" if pairs else b"[]\n"
