"""A family of pairs: the optional and required names of a job script, checked."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pairs
from pairs.job import Fault, Steps

MACHINERY = ("__main__", "family", "job", "result", "side", "turns")
"""Modules of this folder that are no job script."""
JOINED = "+"


@dataclass(frozen=True, kw_only=True)
class Family:
    """A job with faults that can be switched on."""

    name: str
    faults: Mapping[str, Fault]
    pairs: tuple[tuple[str, ...], ...]
    train: Callable[[Set[str], Steps], None]
    behind: Mapping[tuple[str, ...], Set[str]] = field(default_factory=dict)
    samples: Callable[[Set[str]], int] = lambda _: 1
    ranks: int = 1
    threads: int = 1
    has_stacks: bool = False


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The faults of one pair of a family."""

    family: Family
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name as on the command line: `family:fault+fault`."""
        return f"{self.family.name}:{JOINED.join(self.faults)}"

    @property
    def behind(self) -> frozenset[str]:
        """Faults that stay on in both runs."""
        return frozenset(self.family.behind.get(self.faults, ()))

    @property
    def sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """Faults of the run with the faults, and of the fix."""
        return self.behind | frozenset(self.faults), self.behind


def family_names() -> tuple[str, ...]:
    """Returns the names of all job scripts."""
    modules = sorted(module.name for module in iter_modules(pairs.__path__))
    return tuple(name for name in modules if name not in MACHINERY)


def load_family(name: str) -> Family:
    """Returns a job script as a family.

    Raises:
        ValueError: a pair names a fault that the job does not have.
    """
    module = import_module(f"pairs.{name}")
    options: dict[str, Any] = {
        field_name: getattr(module, constant)
        for field_name, constant in (
            ("behind", "BEHIND"),
            ("samples", "samples"),
            ("ranks", "RANKS"),
            ("threads", "THREADS"),
            ("has_stacks", "STACKS"),
        )
        if hasattr(module, constant)
    }
    family = Family(
        name=name,
        faults=module.FAULTS,
        pairs=tuple(tuple(faults) for faults in module.PAIRS),
        train=module.train,
        **options,
    )
    for pair in pairs_of(family):
        if unknown := sorted(pair.sides[0] - set(family.faults)):
            message = f"{pair.name}: FAULTS has no {', '.join(unknown)}"
            raise ValueError(message)
    return family


def pairs_of(family: Family) -> tuple[Pair, ...]:
    """Returns the pairs of a family."""
    return tuple(Pair(family=family, faults=faults) for faults in family.pairs)


def find_pairs(name: str) -> tuple[Pair, ...]:
    """Returns the pairs of `family` or `family:fault+fault`.

    Raises:
        ValueError: the family does not have this pair.
    """
    family_name, _, faults = name.partition(":")
    all_pairs = pairs_of(load_family(family_name))
    if not faults:
        return all_pairs
    matches = tuple(pair for pair in all_pairs if set(pair.faults) == set(faults.split(JOINED)))
    if not matches:
        message = f"{name}: its pairs are {', '.join(pair.name for pair in all_pairs)}"
        raise ValueError(message)
    return matches
