"""What files are worth, in Markdown."""

from collections.abc import Iterator

from stepscope.base.report import FileHealth, HealthItem, HealthReport
from stepscope.base.urls import redacted
from stepscope.render import health_phrases, phrases, settings_text
from stepscope.render.markdown_escape import code, fenced, text


def render(report: HealthReport) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for file in report.files for line in _file(file)]
    problems = phrases.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _file(file: FileHealth) -> Iterator[str]:
    yield from (f"## {text(redacted(file.path))}", "")
    yield from (text(health_phrases.whose(file)), "", text(health_phrases.facts(file)), "")
    yield from _settings(file)
    yield from (f"**{text(health_phrases.verdict(file))}**", "")
    for item in health_phrases.told(file):
        yield from _item(item)
    if file.record_next:
        yield from _next(file)


def _settings(file: FileHealth) -> Iterator[str]:
    """Yield the run's settings as a list; or how to record them."""
    if not file.settings:
        yield f"{text(settings_text.NOT_RECORDED)} {code(settings_text.HOW_TO_RECORD)}"
        yield ""
        return
    for name, told in settings_text.groups(file.settings):
        yield f"- {text(name)}: {text(told)}"
    yield ""


def _item(item: HealthItem) -> Iterator[str]:
    severity = phrases.capitalised(item.severity)
    yield from (f"### {severity}: {code(item.kind)}, {health_phrases.counted(item)}", "")
    yield from (text(phrases.capitalised(phrases.health(item))), "")
    if affected := health_phrases.affected(item):
        yield from (f"{text(affected)}.", "")
    yield from (f"- {text(health_phrases.example(example))}" for example in item.examples)
    if item.examples:
        yield ""


def _next(file: FileHealth) -> Iterator[str]:
    yield from ("### Not recorded", "", "| what | why |", "|---|---|")
    for missing in file.record_next:
        yield f"| {text(missing.flag)} | {text(missing.why)} |"
    yield from ("", f"{health_phrases.NEXT_TIME}:", "")
    yield from fenced(file.profile_call, "python")
