"""What the fields of a wire type mean: the texts that stand below them in the source."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import MappingProxyType


@cache
def field_meanings(kind: type) -> MappingProxyType[str, str]:
    """Return the text below each field of a class and of those it derives from; none is no entry.

    Python keeps no docstring of a field, so they are read from the source; where that was not
    installed there are none.
    """
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith(__name__.partition(".")[0]):
            found.update(_of_source(each))
    return MappingProxyType(found)


def _of_source(kind: type) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return
    [definition] = tree.body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, text in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(text.value.value)
