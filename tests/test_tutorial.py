"""The tutorial is its scripts, and its output has the shape of what its commands print."""

import re
from pathlib import Path

import pytest

import tutorial

PAGE = tutorial.PAGE.read_text()
BLOCKS = tutorial.BLOCK.findall(PAGE)


def blocks_of(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def shape(output: str) -> list[str]:
    """Return the parts of an output that do not depend on the machine, in their order."""
    parts = (
        r"^epoch \d",
        r"^Where .*(?= potential|$)|^Where the change comes from",
        r"\[(?:float64-compute|dataloader)(?=-|\])",  # with free CPUs dataloader-no-workers
        r"train\.py:23 \(__getitem__\)",  # few samples do not find the others
        r"^ +model = model\.float\(\)",
        r"^The step takes (?=.* less: )|statistically\s+significant",
        r"^FIXED",
        r"^Estimated and achieved saving",
    )
    pattern = "|".join(f"(?:{part})" for part in parts)
    return [" ".join(match.split()) for match in re.findall(pattern, output, re.MULTILINE)]


def test_the_scripts_of_the_page_are_those_that_run() -> None:
    assert blocks_of("python") == [tutorial.script("train.py")]
    assert blocks_of("diff") == [tutorial.change()]


def test_the_page_shows_advice_and_comparison() -> None:
    _, advice, _, comparison = map(shape, blocks_of("text"))
    assert {"[float64-compute", "[dataloader"} <= set(advice)
    assert {"FIXED", "[float64-compute", "[dataloader"} <= set(comparison)


@pytest.mark.slow
@pytest.mark.recording
@pytest.mark.timeout(1800)
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    blocks = [*tutorial.run(PAGE, tmp_path)]
    outputs = [
        text for (language, _), text in zip(BLOCKS, blocks, strict=True) if language == "text"
    ]
    for written, output in zip(blocks_of("text"), outputs, strict=True):
        assert sorted({*shape(written)} - {*shape(output)}) == []
