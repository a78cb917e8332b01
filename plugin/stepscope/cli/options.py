"""Groups of options that a command receives as one argument."""

import dataclasses
import functools
from collections.abc import Callable
from math import isnan
from typing import Any

import click

Command = Callable[..., None]
MOST_SECONDS = 1e9
"""Largest time of an option: timers do not take more than a few centuries."""


class NumberRange(click.FloatRange):
    """A range of numbers without NaN, which `FloatRange` accepts."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 (click's signature)
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number of a text."""
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail("it must be a number", param, ctx)
        return number


def with_options(
    name: str, record: type[Any], *options: Callable[[Command], Command], **fixed: object
) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, and passes their values as one argument.

    Args:
        name: The argument of the command.
        record: The dataclass of the argument; its fields have the names of the options' parameters.
        options: Decorators of click.
        fixed: Values of fields without an option.
    """
    fields = {field.name for field in dataclasses.fields(record)}

    def decorate(command: Command) -> Command:
        def with_record(**values: object) -> None:
            of_record = {key: values.pop(key) for key in fields & values.keys()}
            command(**{name: record(**of_record, **fixed)}, **values)

        wrapped: Command = functools.wraps(command)(with_record)
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate
