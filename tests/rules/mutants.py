"""Break each rule by hand, and see whether its cases notice: `make mutants`.

Of every rule's source one thing at a time is changed: an option's default by a third, a comparison
turned over, a condition made always true or always false, `and` made `or`. Each changed rule is
asked for all its cases in `tests/rules/<name>.yml` (and nothing else); it should fail one of them.
What survives is printed: a case is missing, or the code does nothing.

    python -m rules.mutants item-sync launch-bound     # these rules; all without a name
"""

import ast
import copy
import dataclasses
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rules import test_rules as cases
from stepscope.rules import Rule

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
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
}
FACTORS = (0.67, 1.5)
SMALL = 20

Mutant = tuple[str, Rule[Any]]


def mutants(stem: str) -> Iterator[Mutant]:
    """Yield a rule with one thing changed, and what."""
    yield from _other_options(cases.RULES[stem])
    yield from _other_code(stem)


def _other_options(rule: Rule[Any]) -> Iterator[Mutant]:
    for field in dataclasses.fields(rule.options):
        if not field.metadata["is_threshold"]:
            continue
        value = getattr(rule.options, field.name)
        moved = [_moved(value, factor) for factor in FACTORS]
        fields = [dataclasses.replace(rule.options, **{field.name: each}) for each in moved]
        for options, each in zip(fields, moved, strict=True):
            yield f"{field.name} = {each}", dataclasses.replace(rule, options=options)


def _moved(value: Any, factor: float) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and value < SMALL:
        return value + (1 if factor > 1 else -1)
    return type(value)(value * factor) if isinstance(value, int | float) else f"{value}x"


def _other_code(stem: str) -> Iterator[Mutant]:
    path = Path(importlib.import_module(f"stepscope.rules.{stem}").__file__ or "")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for place, (line, words, _) in enumerate(_changes(tree)):
        changed = copy.deepcopy(tree)
        _, _, change = list(_changes(changed))[place]
        change()
        module = types.ModuleType(f"stepscope.rules.{stem}")
        sys.modules["a_changed_rule"] = module
        module.__name__ = "a_changed_rule"
        try:
            exec(compile(ast.fix_missing_locations(changed), str(path), "exec"), module.__dict__)  # noqa: S102
        except Exception:  # noqa: S112 (it cannot even be imported, which any test notices)
            continue
        yield f"line {line}: {words}", module.RULE


Change = tuple[int, str, Callable[[], None]]


def _changes(tree: ast.Module) -> Iterator[Change]:
    """Yield every change that can be made to a module's functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                yield from _of(node)


def _of(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for place in range(len(node.ops)):
            yield _turned(node, place)
    if isinstance(node, ast.If | ast.IfExp):
        yield from (_fixed(node, value) for value in (True, False))
    if isinstance(node, ast.BoolOp):
        yield _swapped(node)


def _turned(node: ast.Compare, place: int) -> Change:
    operator = node.ops[place]

    def change() -> None:
        node.ops[place] = TURNED[type(operator)]()

    return node.lineno, f"{type(operator).__name__} turned in `{ast.unparse(node)}`", change


def _fixed(node: ast.If | ast.IfExp, value: object) -> Change:
    def change() -> None:
        node.test = ast.Constant(bool(value))

    return node.test.lineno, f"`{ast.unparse(node.test)}` is always {value}", change


def _swapped(node: ast.BoolOp) -> Change:
    def change() -> None:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()

    return node.lineno, f"and/or swapped in `{ast.unparse(node)}`", change


def survives(rule: Rule[Any], document: dict[str, Any]) -> bool:
    """Tell whether a changed rule passes all cases."""
    for case in cases.cases_of(document).values():
        try:
            cases.check_case(rule, case)
        except (AssertionError, ValueError):
            return False
    return True


def main(names: list[str]) -> int:
    """Print what survives; return how many."""
    documents = cases.documents()
    chosen = [name.replace("-", "_") for name in names] or sorted(documents)
    count = left = 0
    for stem in chosen:
        for words, rule in mutants(stem):
            count += 1
            if survives(rule, documents[stem]):
                left += 1
                print(f"{stem}: {words}", flush=True)
    print(f"{count} changes, {left} unnoticed")
    return left


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
