"""Break the rules by hand, one thing at a time, and see whether their cases notice.

    make mutants                              # all rules, and what several of them share
    make mutants RULE="item-sync shared.sync_waits"      # these files of `stepscope/rules`

Changed is each option's default and each numeric constant (by a third, both ways), each comparison
(turned over), each condition (always true, always false), `and` and `or`, `&` and `|` (one for the
other). The cases in `tests/rules/<name>.yml` of each rule that has the changed file in it are then
asked, and nothing else; one should fail. What passes them all is printed: a case is missing, or the
code does nothing. `test_mutants.py` does the same to the options alone.

A change that no trace can show is listed in `equivalent_mutants.py` with the reason; the script
says so if a case notices it after all, or if there is no such change any more.
"""

import ast
import copy
import dataclasses
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from rules import test_rules as cases
from rules.equivalent_mutants import EQUIVALENT
from rules.kept import RANKS, TRACES, documents
from stepscope import rules
from stepscope.rules import Rule, shared

FACTORS = (0.67, 1.5)
SMALL = 20
ONLY_SHOWN = re.compile(r"MOST_(ROWS|LINES|EVENTS|NAMED|SIZES|SHOWN)|.*SHOWN.*|NAMED_\w+")
"""Constants that say how much is shown, which is no threshold."""
TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

Function = ast.FunctionDef
Change = tuple[str, Callable[[], None]]
"""What is changed in words, and what does it to a syntax tree."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """Rules of which one thing is changed for as long as `change()` is entered."""

    stem: str
    words: str
    asked: tuple[Rule[Any], ...]
    change: Callable[[], AbstractContextManager[Any]] = nullcontext
    line: int = 0
    option: str = ""
    """The threshold that is changed: the cases near it are run first."""

    @property
    def is_equivalent(self) -> bool:
        return (self.stem, self.words) in {listed[:2] for listed in EQUIVALENT}


def stems() -> list[str]:
    """Return the files of the rules, and those that several share: `shared.facts`."""
    names = [module.name for module in iter_modules(rules.__path__) if not module.ispkg]
    names += [f"shared.{module.name}" for module in iter_modules(shared.__path__)]
    return sorted(names)


def mutants(stem: str) -> Iterator[Mutant]:
    """Yield everything that is changed about a file of the rules."""
    if stem in cases.RULES:
        yield from other_options(stem)
    asked = tuple(cases.RULES[each] for each in cases.RULES if stem in _within(each))
    yield from _other_constants(stem, asked)
    yield from _other_code(stem, asked)


def other_options(stem: str) -> Iterator[Mutant]:
    """Yield a rule with each threshold's default moved down, and up."""
    rule = cases.RULES[stem]
    for field in dataclasses.fields(rule.options):
        value = getattr(rule.options, field.name)
        for factor in FACTORS if field.metadata["is_threshold"] else ():
            moved = _moved(value, factor)
            options = dataclasses.replace(rule.options, **{field.name: moved})
            changed = dataclasses.replace(rule, options=options)
            yield Mutant(stem, f"{field.name} = {moved}", (changed,), option=field.name)


def _moved(value: Any, factor: float) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and value < SMALL:
        return value + (1 if factor > 1 else -1)
    return type(value)(value * factor) if isinstance(value, int | float) else f"{value}x"


def _other_constants(stem: str, asked: tuple[Rule[Any], ...]) -> Iterator[Mutant]:
    for name, line in _assigned(stem).items():
        value = getattr(_module(stem), name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        if not is_number or ONLY_SHOWN.fullmatch(name):
            continue
        for moved in (_moved(value, factor) for factor in FACTORS):
            change = partial(_constant_is, stem, name, moved)
            yield Mutant(stem, f"{name} = {moved}", asked, change, line)


@contextmanager
def _constant_is(stem: str, name: str, value: float) -> Iterator[None]:
    """Change a constant where it is assigned, and where it was imported from there."""
    holders = [each for each in stems() if each == stem or stem in _imported(each)]
    names = [
        _module(each).__dict__ for each in holders if each == stem or name not in _assigned(each)
    ]
    found = [each for each in names if name in each]
    before = found[0][name]
    for each in found:
        each[name] = value
    try:
        yield
    finally:
        for each in found:
            each[name] = before


def _other_code(stem: str, asked: tuple[Rule[Any], ...]) -> Iterator[Mutant]:
    tree = _tree(stem)
    for place, (words, owner, line) in enumerate(_named(tree)):
        change = partial(_code_is_changed, stem, owner, place)
        yield Mutant(stem, f"{owner}: {words}", asked, change, line)


def _named(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    for owner, node, (words, _) in _changes(tree):
        yield words, owner, node.lineno


@contextmanager
def _code_is_changed(stem: str, owner: str, place: int) -> Iterator[None]:
    """Give a function the code of one in which the change of this number was made."""
    changed = copy.deepcopy(_tree(stem))
    _, _, (_, change) = list(_changes(changed))[place]
    change()
    path = _module(stem).__file__ or ""
    module = compile(ast.fix_missing_locations(changed), path, "exec")
    function = _function(stem, owner)
    before = function.__code__
    function.__code__ = _code_of(module, owner)
    try:
        yield
    finally:
        function.__code__ = before


def _function(stem: str, owner: str) -> Any:
    found: Any = _module(stem)
    for name in owner.split("."):
        found = inspect.getattr_static(found, name)
        found = found.fget if isinstance(found, property) else found
        found = getattr(found, "__func__", found)
    return inspect.unwrap(found)


def _code_of(code: types.CodeType, owner: str) -> types.CodeType:
    name, _, rest = owner.partition(".")
    [inner] = [
        each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == name
    ]
    return _code_of(inner, rest) if rest else inner


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.expr, Change]]:
    """Yield the owner, the place and the change, of all that can be made to a file's functions."""
    for owner, function in _functions(tree):
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            yield from ((owner, *each) for each in _of(node))


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{each.name}", each)
                for each in node.body
                if isinstance(each, Function)
            )


def _of(node: ast.AST) -> Iterator[tuple[ast.expr, Change]]:
    if isinstance(node, ast.Compare):
        for place in range(len(node.ops)):
            yield node, _turned_at(node, place)
    if isinstance(node, ast.If | ast.IfExp):
        yield from ((node.test, _fixed(node, value)) for value in (True, False))
    if isinstance(node, ast.comprehension):
        for place, test in enumerate(node.ifs):
            yield test, _fixed_at(node, place)
    is_mask = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)
    if isinstance(node, ast.BoolOp) or is_mask:
        yield node, _swapped(node)  # type: ignore[misc, arg-type]


def _turned_at(node: ast.Compare, place: int) -> Change:
    operator = type(node.ops[place])

    def change() -> None:
        node.ops[place] = TURNED[operator]()  # type: ignore[call-overload]

    return f"{operator.__name__} turned in `{ast.unparse(node)}`", change


def _fixed(node: ast.If | ast.IfExp, value: object) -> Change:
    def change() -> None:
        node.test = ast.Constant(bool(value))

    return f"`{ast.unparse(node.test)}` is always {value}", change


def _fixed_at(node: ast.comprehension, place: int) -> Change:
    def change() -> None:
        node.ifs[place] = ast.Constant(value=True)

    return f"`{ast.unparse(node.ifs[place])}` is always True", change


def _swapped(node: ast.BoolOp | ast.BinOp) -> Change:
    def change() -> None:
        node.op = TURNED[type(node.op)]()  # type: ignore[assignment]

    return f"{type(node.op).__name__} swapped in `{ast.unparse(node)}`", change


@cache
def _tree(stem: str) -> ast.Module:
    return ast.parse(Path(_module(stem).__file__ or "").read_text(encoding="utf-8"))


def _module(stem: str) -> types.ModuleType:
    return importlib.import_module(f"stepscope.rules.{stem}")


@cache
def _assigned(stem: str) -> dict[str, int]:
    """Return the names that a file assigns, and where."""
    simple = [node for node in _tree(stem).body if isinstance(node, ast.Assign)]
    names = [(each, node.lineno) for node in simple for each in node.targets]
    return {each.id: line for each, line in names if isinstance(each, ast.Name)}


@cache
def _imported(stem: str) -> frozenset[str]:
    """Return the shared files that a file imports."""
    nodes = [node for node in _tree(stem).body if isinstance(node, ast.ImportFrom)]
    modules = [node.module or "" for node in nodes]
    modules += [f"{node.module}.{alias.name}" for node in nodes for alias in node.names]
    return frozenset(name.removeprefix(f"{rules.__name__}.") for name in modules) & frozenset(
        stems()
    )


@cache
def _within(stem: str) -> frozenset[str]:
    """Return the files of this folder that a file consists of."""
    return frozenset({stem}).union(*(_within(each) for each in _imported(stem)))


def survives(mutant: Mutant) -> bool:
    """Tell whether changed rules pass all their cases."""
    with mutant.change():
        return all(passes(rule, near=mutant.option) for rule in mutant.asked)


def passes(rule: Rule[Any], *, near: str = "") -> bool:
    """Return whether a rule passes all its cases, of which those near a threshold run first."""
    _forget()
    document = documents()[rule.id.replace("-", "_")]
    try:
        for case in sorted(
            cases.cases_of(document).values(), key=lambda case: case.get("near") != near
        ):
            cases.check_case(rule, case)
    except Exception:  # (whatever a broken rule does to a test makes that test fail)
        return False
    finally:
        _forget()
    return True


def _forget() -> None:
    """Drop what rules, unlike analyses, keep with the cases' traces."""
    ranks = (each for _, traces in RANKS.values() for each in traces)
    for trace in (*(each for _, each in TRACES.values()), *ranks):
        for key in [key for key in trace.results if key.startswith(rules.__name__)]:
            del trace.results[key]


def main(names: list[str]) -> int:
    """Print what survives; return how many."""
    chosen = [name.replace("-", "_") for name in names] or stems()
    made = [mutant for stem in chosen for mutant in mutants(stem)]
    for rule in {
        rule.id: cases.RULES[rule.id.replace("-", "_")] for each in made for rule in each.asked
    }.values():
        if not passes(rule):
            sys.exit(f"{rule.id} fails its cases as it is")
    left = 0
    for mutant in made:
        if survives(mutant) != mutant.is_equivalent:
            left += 1
            what = "is listed as equivalent, and is noticed" if mutant.is_equivalent else ""
            print(f"{mutant.stem}:{mutant.line}: {mutant.words} {what}".rstrip(), flush=True)
    for stem, words, _ in gone(made, chosen):
        left += 1
        print(f"{stem}: {words}: is listed as equivalent, and there is no such change")
    print(f"{len(made)} changes, {left} unnoticed, {len(EQUIVALENT)} listed as equivalent")
    return left


def gone(made: list[Mutant], chosen: list[str]) -> list[tuple[str, str, str]]:
    """Return what is listed as equivalent though there is no such change."""
    known = {(mutant.stem, mutant.words) for mutant in made}
    files = {*chosen} | ({stem for stem, _, _ in EQUIVALENT} - {*stems()})
    return [each for each in EQUIVALENT if each[0] in files and each[:2] not in known]


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
