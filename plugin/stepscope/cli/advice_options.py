"""Command-line options that select rules and configure advice."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.options import NumberRange, with_options

if TYPE_CHECKING:
    from stepscope.advice.settings import AdviceSettings

MOST_GPUS, MOST_PRICE = 10_000_000, 1e9
"""Limits of `advice.settings`, repeated here because that module is imported late."""


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Values of the options for rules."""

    config: str | None = None
    is_isolated: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    profile: str | None = None
    is_preview: bool | None = None
    has_plugins: bool = True
    gpus: int | None = None
    price: float | None = None

    def settings(self) -> "AdviceSettings":
        """Return the settings of the nearest file, overridden by the options.

        Raises:
            UsageError: The file, a rule, an option or a value is invalid.
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
        settings = AdviceSettings() if path is None else read_settings(path)
        changes = Changes(
            select=_names(self.select) if self.select else None,
            ignore=_names(self.ignore),
            preview=self.is_preview,
            gpus=self.gpus,
            price=self.price,
        )
        profile = settings.profile if self.profile is None else self.profile
        return validated(
            replace(
                settings.then(changes.then(option_changes(self.assignments))),
                profile=validated_profile(profile, settings.profiles),
                has_packages=settings.has_packages and self.has_plugins,
            )
        )


def _names(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


CONFIGURATION_HELP = (
    "Read settings from this file.  [default: the nearest stepscope.toml or pyproject.toml]"
)


_FILE_OPTIONS = (
    click.option(
        "--config", type=click.Path(dir_okay=False), metavar="FILE", help=CONFIGURATION_HELP
    ),
    click.option("--isolated", "is_isolated", is_flag=True, help="Read no settings file."),
)
with_configuration = with_options("rule_options", RuleOptions, *_FILE_OPTIONS)
"""Add the options that select the settings file, as `rule_options`."""
with_rules = with_options(
    "rule_options",
    RuleOptions,
    click.option(
        "--select",
        shell_complete=completion.rules,
        multiple=True,
        metavar="NAMES",
        help="Run only these rules: ids, categories, severities or `all`, separated by commas.",
    ),
    click.option(
        "--ignore",
        shell_complete=completion.rules,
        multiple=True,
        metavar="NAMES",
        help="Exclude these rules; names as for --select.",
    ),
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="RULE.OPTION=VALUE",
        help="Set an option of a rule, or its `severity`; `stepscope explain RULE` lists them.",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        help="Use this profile of the settings for all runs, `training` or `inference`.",
    ),
    click.option(
        "--preview/--no-preview",
        "is_preview",
        default=None,
        help="Also run preview rules.  [default: no-preview]",
    ),
    click.option(
        "--gpus",
        type=click.IntRange(min=1, max=MOST_GPUS),
        metavar="N",
        help="Number of the job's devices, to estimate its saving per day.  [default: as recorded]",
    ),
    click.option(
        "--price",
        type=NumberRange(min=0, max=MOST_PRICE),
        metavar="NUMBER",
        help="Price of a GPU-hour in any currency, to estimate the saving in money.",
    ),
    *_FILE_OPTIONS,
    click.option(
        "--no-plugins",
        "has_plugins",
        flag_value=False,
        default=True,
        help="Do not load rules of other packages.",
    ),
)
"""Add the options of `RuleOptions`, as `rule_options`."""
