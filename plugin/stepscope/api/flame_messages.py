"""The answers on flame graphs, by columns."""

import msgspec

from stepscope.analyses.flames.flame_tree import Unit


class FlameKind(msgspec.Struct, frozen=True):
    """What a frame can be."""

    id: str
    label: str


class FlameGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A flame graph by columns: nodes by depth, those of one parent together, heaviest first.

    Own values of a node and all below it sum to its total, and the totals of the top to `whole`,
    `smaller` frames included. A comparison has a second side, the baseline.
    """

    schema: int
    unit: Unit
    """Of `own`, `total` and `whole`: ns, or bytes."""
    kinds: tuple[FlameKind, ...]
    names: tuple[str, ...]
    name_kinds: tuple[int, ...]
    """What each of `names` is: a place in `kinds`."""
    parent: tuple[int, ...]
    """Of each node; -1 at the top."""
    name: tuple[int, ...]
    """Of each node: a place in `names`."""
    own: tuple[int, ...]
    """Of each node without those below it, in `unit`."""
    total: tuple[int, ...]
    """Of each node with all below it, in `unit`."""
    calls: tuple[int, ...]
    """How often each was called; of memory, how many allocations it made itself."""
    merged_count: tuple[int, ...]
    """How many frames a node of the kind `smaller` stands for; 0 for all others."""
    whole: int
    """The sum of all, in `unit`."""
    steps: int
    """How many steps that is of; 0: it is not known, or of no steps."""
    before_own: tuple[int, ...] = ()
    """As `own`, of the baseline; empty where nothing is compared, as all that follow."""
    before_total: tuple[int, ...] = ()
    """As `total`, of the baseline."""
    before_calls: tuple[int, ...] = ()
    """As `calls`, of the baseline."""
    before_whole: int = 0
    """As `whole`, of the baseline."""
    before_steps: int = 0
    """As `steps`, of the baseline."""
    is_per_step: bool = False
    """Whether values are of whole steps, and are read divided by their number."""
    root: int = -1
    """The node that fills the picture, as far as `root` was found; -1: all do."""
    node_count: int = 0
    """How many nodes there are in full."""
    devices: tuple[str, ...] = ()
    """Of memory: the labels of devices that can be asked for."""
    device: str = ""
    """Of memory: whose it is."""
    at_ns: int | None = None
    """Of memory: when most was held."""
    note: str = ""
    """What to know about it."""
    remedy: str = ""
    """The code that would record more."""
    empty: str = ""
    """Where there is nothing: why."""


class FlameFunctions(msgspec.Struct, frozen=True, kw_only=True):
    """Each name of a flame graph once, the largest own value first."""

    schema: int
    unit: Unit
    kinds: tuple[FlameKind, ...]
    names: tuple[str, ...]
    name_kinds: tuple[int, ...]
    """What each of `names` is: a place in `kinds`."""
    own: tuple[int, ...]
    """Without what it calls, in `unit`."""
    total: tuple[int, ...]
    """With what it calls, once where it calls itself, in `unit`."""
    calls: tuple[int, ...]
    whole: int
    """The sum of all own values, in `unit`; also of names that are not listed."""
    steps: int
    """How many steps that is of; 0: it is not known, or of no steps."""
    all_count: int
    """How many names there are, of which the largest are listed."""
    before_own: tuple[int, ...] = ()
    """As `own`, of the baseline; empty where nothing is compared, as all that follow."""
    before_total: tuple[int, ...] = ()
    """As `total`, of the baseline."""
    before_calls: tuple[int, ...] = ()
    """As `calls`, of the baseline."""
    before_whole: int = 0
    """As `whole`, of the baseline."""
    before_steps: int = 0
    """As `steps`, of the baseline."""
    is_per_step: bool = False
    """Whether values are of whole steps, and are read divided by their number."""
