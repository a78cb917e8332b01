"""What files are worth, in Markdown."""

from collections.abc import Iterator

from stepscope.addresses import shown
from stepscope.render import health_words, settings_words, words
from stepscope.render.markup import code, fenced, text
from stepscope.report import FileHealth, HealthItem, HealthReport


def render(report: HealthReport) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for file in report.files for line in _file(file)]
    problems = words.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _file(file: FileHealth) -> Iterator[str]:
    yield from (f"## {text(shown(file.path))}", "")
    yield from (text(health_words.whose(file)), "", text(health_words.facts(file)), "")
    yield from _settings(file)
    yield from (f"**{text(health_words.verdict(file))}**", "")
    for item in health_words.told(file):
        yield from _item(item)
    if file.record_next:
        yield from _next(file)


def _settings(file: FileHealth) -> Iterator[str]:
    """Yield the run's settings as a list; or how to record them."""
    if not file.settings:
        yield f"{text(settings_words.NOT_RECORDED)} {code(settings_words.HOW_TO_RECORD)}"
        yield ""
        return
    for name, told in settings_words.groups(file.settings):
        yield f"- {text(name)}: {text(told)}"
    yield ""


def _item(item: HealthItem) -> Iterator[str]:
    severity = words.capitalised(item.severity)
    yield from (f"### {severity}: {code(item.kind)}, {health_words.counted(item)}", "")
    yield from (text(words.capitalised(words.health(item))), "")
    if affected := health_words.affected(item):
        yield from (f"{text(affected)}.", "")
    yield from (f"- {text(health_words.example(example))}" for example in item.examples)
    if item.examples:
        yield ""


def _next(file: FileHealth) -> Iterator[str]:
    yield from ("### Not recorded", "", "| what | why |", "|---|---|")
    for missing in file.record_next:
        yield f"| {text(missing.flag)} | {text(missing.why)} |"
    yield from ("", f"{health_words.NEXT_TIME}:", "")
    yield from fenced(file.profile_call, "python")
