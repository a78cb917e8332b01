"""The options that say which rules are asked, and what of their findings counts."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.advice.settings import AdviceSettings

MOST_GPUS, MOST_PRICE = 10_000_000, 1e9
"""As in `advice.settings`, which is imported late."""


def _price(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    """Return what a device costs; a range lets NaN pass."""
    if given is not None and isnan(given):
        msg = "it must be a number"
        raise click.BadParameter(msg)
    return given


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user said of the rules."""

    config: str | None
    is_isolated: bool
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    assignments: tuple[str, ...]
    profile: str | None
    is_preview: bool | None
    has_plugins: bool
    gpus: int | None = None
    price: float | None = None

    def settings(self) -> "AdviceSettings":
        """Return it with what the nearest file says, which goes behind the options.

        Raises:
            UsageError: the file, a rule, an option or a value is not as it must be.
        """
        from stepscope.advice.settings import AdviceSettings, Changes, validated
        from stepscope.advice.settings_files import (
            nearest_file,
            option_changes,
            read_settings,
            validated_profile,
        )

        path = Path(self.config) if self.config else None
        if path is None and not self.is_isolated:
            path = nearest_file(Path.cwd())
        said = AdviceSettings() if path is None else read_settings(path)
        given = Changes(
            select=_names(self.select) if self.select else None,
            ignore=_names(self.ignore),
            preview=self.is_preview,
            gpus=self.gpus,
            price=self.price,
        )
        profile = said.profile if self.profile is None else self.profile
        settings = replace(
            said.then(given.then(option_changes(self.assignments))),
            profile=validated_profile(profile, said.profiles),
            has_packages=said.has_packages and self.has_plugins,
        )
        return validated(settings)


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


CONFIGURATION_HELP = "Configuration.  [default: the nearest stepscope.toml or pyproject.toml]"


def with_configuration(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say whose settings of the rules count, and no others, as `asked`."""

    @click.option(
        "--config", type=click.Path(dir_okay=False), metavar="FILE", help=CONFIGURATION_HELP
    )
    @click.option("--isolated", "is_isolated", is_flag=True, help="Read no configuration.")
    @functools.wraps(command)
    def with_one(*, config: str | None, is_isolated: bool, **given: object) -> None:
        asked = Asked(
            config=config,
            is_isolated=is_isolated,
            select=(),
            ignore=(),
            assignments=(),
            profile=None,
            is_preview=None,
            has_plugins=True,
        )
        command(asked=asked, **given)

    return with_one


def with_rules(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which rules are asked, as `asked`."""
    options = (
        click.option(
            "--select",
            multiple=True,
            metavar="NAMES",
            help="Only these rules: ids, categories, severities, or `all`; commas between them.",
        ),
        click.option("--ignore", multiple=True, metavar="NAMES", help="Not these; as --select."),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="RULE.OPTION=VALUE",
            help="An option of a rule, or its `severity`; `stepscope explain RULE` lists them.",
        ),
        click.option(
            "--profile",
            metavar="NAME",
            help="A profile of the configuration for all runs, `training` or `inference`.",
        ),
        click.option(
            "--preview/--no-preview",
            "is_preview",
            default=None,
            help="Ask rules too that are still on trial.  [default: no-preview]",
        ),
        click.option(
            "--gpus",
            type=click.IntRange(min=1, max=MOST_GPUS),
            metavar="N",
            help="Devices of the whole job, to tell what it could save a day."
            "  [default: what was recorded]",
        ),
        click.option(
            "--price",
            type=click.FloatRange(min=0, max=MOST_PRICE),
            callback=_price,
            metavar="NUMBER",
            help="Of a GPU-hour, in any currency, to tell the same in money.",
        ),
        click.option(
            "--config",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=CONFIGURATION_HELP,
        ),
        click.option("--isolated", "is_isolated", is_flag=True, help="Read no configuration."),
        click.option(
            "--no-plugins",
            "has_plugins",
            flag_value=False,
            default=True,
            help="Without rules of other packages.",
        ),
    )

    @functools.wraps(command)
    def with_one(  # noqa: PLR0913 (one parameter an option)
        *,
        config: str | None,
        is_isolated: bool,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        assignments: tuple[str, ...],
        profile: str | None,
        is_preview: bool | None,
        has_plugins: bool,
        gpus: int | None,
        price: float | None,
        **given: object,
    ) -> None:
        asked = Asked(
            config=config,
            is_isolated=is_isolated,
            select=select,
            ignore=ignore,
            assignments=assignments,
            profile=profile,
            is_preview=is_preview,
            has_plugins=has_plugins,
            gpus=gpus,
            price=price,
        )
        command(asked=asked, **given)

    return functools.reduce(lambda inner, option: option(inner), reversed(options), with_one)
