"""Commands in the README and in docs/: all are parsed, and those that need no network are run."""

import re
import shlex
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from scripts import man_pages
from stepscope.cli import COMMANDS as COMMANDS_OF_CLI
from stepscope.cli import cli
from stepscope.tensorboard import StepscopeLoader

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_logs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    SAMPLES / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(stepscope [^`]+|(?:pip|make|tensorboard) [^`]+)`")
LANGUAGES = {"bash", "cff", "diff", "json", "python", "sql", "text", "toml", "yaml"}
OTHER_PROGRAMS = {
    *(
        "cd",
        "curl",
        "dask",
        "do",
        "done",
        "export",
        "for",
        "git",
        "man",
        "python",
        "python3",
        "source",
    ),
    *("docker", "srun", "trap", "vllm"),
}
"""Programs that commands in the docs may call, apart from those that are checked."""
LASTING = {"record", "serve", "share"}
"""Commands that take long; tests/test_tutorial.py, test_cli.py and test_shared_file.py run them."""
ELSEWHERE = re.compile(r"[a-z0-9]+://|/shared|/tmp|--scheduler|acme/|RULE\b|sampled-")
"""Marks of commands that need a network, a cluster, another package, or samples of the host."""
SAMPLE_OF = {
    **dict.fromkeys(("log/before", "log/slow"), "before"),
    **dict.fromkeys(("log/after", "log/fast"), "after"),
    "log/run": "log/resnet50",
}
"""Folders in the docs, with the folder of the workspace that takes their place."""
SLOW = re.compile(
    r"stepscope (advise|compare|cut|memory|query .* |scalars|whatif)|schema --api|critical-path"
)
"""Commands that take more than half a second; other tests run them as well."""


class Command(NamedTuple):
    """A simple command in a page."""

    page: str
    words: tuple[str, ...]
    is_inline: bool

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def commands() -> Iterator[Command]:
    for path in PAGES:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        for _, language, block in FENCED.findall(text):
            if language == "bash":
                yield from (Command(page, words, is_inline=False) for words in split(block))
            for line in re.findall(r"^ *- run: (.+)$", block, re.MULTILINE):
                yield from (Command(page, words, is_inline=False) for words in split(line))
        for inline in INLINE.findall(FENCED.sub("", text)):
            line = " ".join(inline.split())
            yield from (Command(page, words, is_inline=True) for words in split(line))


def split(script: str) -> Iterator[tuple[str, ...]]:
    """Yield the simple commands of a script, without assignments and redirections."""
    for line in script.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, words = True, list[str]()
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|<>()"):
                while words and re.match(r"\w+=", words[0]):
                    del words[0]
                if words:
                    yield tuple(words)
                words = []
            else:
                words.append(word)


def arguments_of(command: Command) -> dict[str, object]:
    """Return the arguments of `stepscope` as click parses them, without running the command.

    A command in a sentence may leave required arguments out: it has none.
    """
    context = click.Context(cli)
    name, *arguments = command.words[1:]
    if name in {option for parameter in cli.get_params(context) for option in parameter.opts}:
        return {}
    subcommand = cli.get_command(context, name)
    assert subcommand, f"there is no command {name}"
    try:
        return subcommand.make_context(name, arguments, parent=context).params
    except click.MissingParameter:
        if not command.is_inline:
            raise
        return {}


COMMANDS = sorted(set(commands()))
OF_STEPSCOPE = sorted({c.text: c for c in COMMANDS if c.words[0] == "stepscope"}.items())


def runnable() -> Iterator[object]:
    """Yield the parameters of a test for each command that needs only samples."""
    for text, command in OF_STEPSCOPE:
        is_mention = command.is_inline and len(command.words) == 2
        if is_mention or command.words[1] in LASTING or ELSEWHERE.search(text):
            continue
        with suppress(click.UsageError):  # one test names all of them
            if arguments_of(command):
                marks = [pytest.mark.slow] if SLOW.search(text) else []
                yield pytest.param(command.words[1:], id=text, marks=marks)


def of_program(program: str) -> list[Command]:
    return [command for command in COMMANDS if command.words[0] == program]


def refuse(command: Command, problem: str) -> None:
    pytest.fail(f"{command.page}: {command.text}: {problem}", pytrace=False)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands in the docs name, all of them samples."""
    folder = tmp_path_factory.mktemp("docs")
    [trace] = (SAMPLES / "synthetic_dataloader" / "fault").glob("*.json.gz")
    (folder / "log" / "resnet50").mkdir(parents=True)
    span = trace.name.partition(".")[2]
    (folder / "log" / "resnet50" / f"node1_4711.{span}").symlink_to(trace)
    for name in ("before", "main"):
        (folder / name).symlink_to(trace.parent)
    for name in ("after", "branch"):
        (folder / name).symlink_to(SAMPLES / "synthetic_dataloader" / "fix")
    (folder / "run").symlink_to(SAMPLES / "ranks" / "becomes_slow")
    [trace] = (SAMPLES / "graph_replay_cuda" / "eager").glob("*.json.gz")
    (folder / "trace.json.gz").symlink_to(trace)
    (folder / "known.json").write_text('{"findings": [], "schema": 1}')
    return folder


def test_every_block_of_a_page_has_a_language() -> None:
    for page in PAGES:
        for _, language, block in FENCED.findall(page.read_text()):
            assert language in LANGUAGES, f"{page}: a block of {language or 'no language'}: {block}"


def test_commands_of_stepscope_have_options_that_exist() -> None:
    assert len(OF_STEPSCOPE) > 60
    for _, command in OF_STEPSCOPE:
        try:
            arguments_of(command)
        except click.UsageError as error:
            refuse(command, error.format_message())


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in of_program("make"):
        if command.words[1] not in targets:
            refuse(command, "the Makefile has no such target")


def test_options_of_the_tensorboard_plugin_exist() -> None:
    flags = ArgumentParser()
    StepscopeLoader().define_flags(flags)
    for command in of_program("tensorboard"):
        _, others = flags.parse_known_args(command.words[1:])
        if any(other.startswith("--stepscope") for other in others):
            refuse(command, "TensorBoard's plugin has no such option")


def test_extras_of_the_package_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for command in of_program("pip"):
        for extras in re.findall(r"\[([\w,]+)\]", command.text):
            if not set(extras.split(",")) <= set(project["optional-dependencies"]):
                refuse(command, f"not all of {extras} are extras in pyproject.toml")


def test_other_programs_are_known() -> None:
    programs = {"stepscope", "make", "pip", "tensorboard", *OTHER_PROGRAMS}
    for command in COMMANDS:
        if command.words[0] not in programs:
            refuse(command, "an unknown program: check it, and add it to OTHER_PROGRAMS")


@pytest.mark.parametrize("arguments", [*runnable()])
def test_a_command_runs(
    arguments: Sequence[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("STEPSCOPE_SUMMARIES", "0")
    result = CliRunner().invoke(cli, [SAMPLE_OF.get(word, word) for word in arguments])
    statuses = {0, 1} if any(word.startswith("--fail-on") for word in arguments) else {0}
    assert result.exit_code in statuses, result.stderr
    assert result.output or {"-o", "--output"} & {*arguments}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell: str) -> None:
    def output(**environment: str) -> str:
        return CliRunner().invoke(cli, env=environment, prog_name="stepscope").output

    assert "_STEPSCOPE_COMPLETE" in output(_STEPSCOPE_COMPLETE=f"{shell}_source")
    # fish passes the word itself, the other shells its number
    words = {"COMP_WORDS": "stepscope adv", "COMP_CWORD": "adv" if shell == "fish" else "1"}
    assert "advise" in output(_STEPSCOPE_COMPLETE=f"{shell}_complete", **words)


def test_man_pages_hold_every_option_and_example(tmp_path: Path) -> None:
    man_pages.main(tmp_path)
    for command in COMMANDS_OF_CLI:
        page = (tmp_path / f"stepscope-{command.name}.1").read_text().replace("\\-", "-")
        for parameter in command.params:
            assert all(f"{option}" in page for option in parameter.opts if option[0] == "-")
        examples = re.findall(r"^    (stepscope .+)$", command.help or "", re.MULTILINE)
        assert all(example in page for example in examples)
