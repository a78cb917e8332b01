"""Check that names, docstrings and page strings use the field's words (`scripts/words.toml`).

    check_words.py [PATH ...] [--count]

Paths are files or folders of Python or TypeScript; the default is the package and the page. Prints
one line per word with its place and the word to use; `--count` prints totals by folder.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
PHRASES = {re.compile(pattern, re.IGNORECASE): use for pattern, use in WORDS["phrases"].items()}
ALLOWED: frozenset[str] = frozenset(WORDS.get("allowed_names", {}))
WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
WHAT_ALLOWED = 10 / 10_000
"""Of the words of docstrings: five times what flask, click and werkzeug hold."""
DEFAULT_PATHS = (ROOT / "plugin" / "stepscope", ROOT / "frontend" / "src")
GENERATED = ("static", "node_modules", "types.gen.ts")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Word(NamedTuple):
    """One use of a word that has a better one."""

    path: Path
    line: int
    text: str
    use: str


def words_of_python(path: Path) -> Iterator[Word]:
    """Yield the words of a Python file that have better ones."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed_fields = set(fields_allowed(tree))
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        for name in bound_names(node) if node not in allowed_fields else ():
            for part in re.findall(r"[A-Z]?[a-z]+", name):
                if name not in ALLOWED and part.lower() in WORDS["names"]:
                    yield Word(path, line, f"name {name}", WORDS["names"][part.lower()])
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
            first = docstring.split(maxsplit=1)[0]
            if first in WORDS["docstring_starts"]:
                yield Word(path, line, f"docstring {first} …", WORDS["docstring_starts"][first])
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from phrases(path, line, node.value)


def fields_allowed(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the fields of classes that `allowed_names` lists as `Class.field`."""
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for field in owner.body:
            target = field.target if isinstance(field, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and f"{owner.name}.{target.id}" in ALLOWED:
                yield target


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, as plain_words counts them: no attributes, no imports."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name


def phrases(path: Path, line: int, text: str) -> Iterator[Word]:
    """Yield the phrases in a text that have better ones."""
    for pattern, use in PHRASES.items():
        for match in pattern.finditer(text):
            yield Word(path, line + text[: match.start()].count("\n"), f"“{match.group()}”", use)


def what_share(paths: list[Path]) -> tuple[int, int]:
    """Return how many words of docstrings are `what`, and how many words there are."""
    total = uses = 0
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED):
                docstring = ast.get_docstring(node) or ""
                total += len(re.findall(r"[a-z]+", docstring.lower()))
                uses += len(WHAT.findall(docstring))
    return uses, total


def files(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the Python files and the page's files below some paths."""
    every = [f for path in paths for f in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    ours = [f for f in every if not any(part in GENERATED for part in f.parts)]
    python = [f for f in ours if f.suffix == ".py"]
    page = [f for f in ours if f.suffix in {".ts", ".tsx"} and ".test." not in f.name]
    return python, page


def main() -> int:
    """Print the words that have better ones; return 1 where there are any."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=list(DEFAULT_PATHS))
    parser.add_argument("--count", action="store_true", help="totals by folder")
    options = parser.parse_args()
    python, page = files([path.resolve() for path in options.paths])
    words = [word for path in python for word in words_of_python(path)]
    for path in page:
        words += phrases(path, 1, path.read_text(encoding="utf-8"))
    if options.count:
        for folder, count in Counter(word.path.parent for word in words).most_common():
            print(f"{count:6} {folder.relative_to(ROOT)}")
    else:
        for word in words:
            print(f"{word.path.relative_to(ROOT)}:{word.line}: {word.text}: say {word.use}")
    uses, total = what_share(python)
    is_wordy = uses > WHAT_ALLOWED * total
    if total:
        print(f"“what” is {1e4 * uses / total:.1f} of 10,000 words of docstrings (10 at most)")
    print(f"{len(words)} words to replace")
    return int(bool(words) or is_wordy)


if __name__ == "__main__":
    sys.exit(main())
