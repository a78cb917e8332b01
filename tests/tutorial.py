"""Commands of docs/tutorial.md, run for real; `python -m tutorial` writes their output there."""

import difflib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
SCRIPTS = ROOT / "docs" / "examples" / "tutorial"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"pip install|stepscope serve")
DETAILS = re.compile(r" {3}(How this was estimated|·|Event|Check|Caveat|Operators in)|Ruled out")
"""Starts of the paragraphs of a report that the page leaves out."""
SHOWN = re.compile(r" {3}(At|Fix): |2\. |With “")
"""Starts of the paragraphs that the page shows after these."""
LAST_TABLE = "Operators that changed"
"""Heading of the first table of a comparison that the page leaves out."""


def script(name: str) -> str:
    """Return the slow script or the changed one."""
    return (SCRIPTS / name).read_text()


def change() -> str:
    """Return the change of the script as a unified diff with one line around each part."""
    before, after = (script(name).splitlines() for name in ("train.py", "train_fast.py"))
    lines = [*difflib.unified_diff(before, after, n=1, lineterm="")][2:]
    return "\n".join(" ..." if line.startswith("@@") else line for line in lines[1:]) + "\n"


def excerpt(output: str) -> str:
    """Return the output of a command without details of its report, and with two findings."""
    report, _, end = output.partition(LAST_TABLE)[0].partition("\n3. ")
    _, outlook, sentence = end.partition("\nWith “")
    lines: list[str] = []
    is_detail = False
    for line in report.splitlines():
        if DETAILS.match(line):
            if not is_detail:
                lines.append("   …")
            is_detail = True
        elif SHOWN.match(line):
            is_detail = False
        if not is_detail:
            lines.append(line.rstrip())
    text = "\n".join([*lines, outlook + sentence]).partition("\nDetails of a rule")[0]
    return re.sub(r"\n+(2\. |With “)", r"\n\n\1", text).strip("\n") + "\n"


def run(page: str, folder: Path) -> Iterator[str]:
    """Yield the page's blocks, with the output of its commands in place of the written one."""
    (folder / "train.py").write_text(script("train.py"))
    output = ""
    for language, text in BLOCK.findall(page):
        if language == "python":
            yield script("train.py")
        elif language == "diff":
            (folder / "train.py").write_text(script("train_fast.py"))
            yield change()
        elif language == "text":
            yield excerpt(output)
        else:
            if not NOT_RUN.search(text):
                output = "".join(_output_of(line, folder) for line in text.splitlines())
            yield text


def _output_of(command: str, folder: Path) -> str:
    """Return the standard output of a command, which uses this interpreter."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    if words[0] == "stepscope":
        words[:1] = [sys.executable, "-m", "stepscope"]
    user_environment = {
        name: value for name, value in os.environ.items() if not name.startswith("OMP_")
    }
    return subprocess.run(
        words, cwd=folder, env=user_environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main() -> None:
    """Write the outputs into the page."""
    page = PAGE.read_text()
    with TemporaryDirectory() as folder:
        blocks = run(page, Path(folder))
        written = BLOCK.sub(lambda block: f"```{block[1]}\n{next(blocks)}```", page)
    PAGE.write_text(written)


if __name__ == "__main__":
    main()
