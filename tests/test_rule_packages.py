"""Rules of other packages: the example in docs/ runs; a package that is bad costs itself."""

import dataclasses
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.advice import rule_packages
from stepscope.advice.rule_packages import package_rules
from stepscope.advice.settings import available_rules
from test_advice import rule

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "acme-stepscope-rules"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the example as pip would, into a folder of its own; return where Python finds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--target", str(folder), str(EXAMPLE)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder)}


def stepscope(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stepscope", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_is_listed_explained_and_asked(
    environment: dict[str, str], tmp_path: Path
) -> None:
    listed = stepscope(environment, "rules").stdout
    assert "acme/checkpoint-in-step" in listed
    assert "(acme-stepscope-rules)" in listed
    assert (
        "| Package | acme-stepscope-rules |"
        in stepscope(environment, "explain", "acme/checkpoint-in-step").stdout
    )
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 0, "ts": at * 1e3, "dur": ms * 1e3}
        for cat, name, at, ms in (
            ("user_annotation", "ProfilerStep#1", 0, 100),
            ("user_annotation", "save_checkpoint", 50, 30),
            ("kernel", "gemm", 0, 50),
        )
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    done = stepscope(environment, "advise", str(path), "--format", "json", "--isolated")
    [found] = [
        each
        for each in json.loads(done.stdout)["runs"][0]["outcomes"]
        if each["rule"] == "acme/checkpoint-in-step"
    ]
    assert (found["status"], found["claim"]["net_high_ns"]) == ("found", 30_000_000)
    assert found["package"] == "acme-stepscope-rules"
    without = stepscope(environment, "rules", "--no-plugins").stdout
    assert "acme/" not in without


@pytest.mark.slow
def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=EXAMPLE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


# Packages that cannot be used


def provider(*rules: Any, version: Any = 1) -> SimpleNamespace:
    return SimpleNamespace(STEPSCOPE_API=version, RULES=rules)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let packages be installed that give these objects, or raise these errors."""

    def install(**given: Any) -> None:
        entries = []
        for name, each in given.items():
            entry = EntryPoint(name=name, value=f"{name}_rules", group=rule_packages.GROUP)

            def load(_: EntryPoint, each: Any = each) -> Any:
                if isinstance(each, BaseException):
                    raise each
                return each

            kind = type("Entry", (EntryPoint,), {"load": load})
            entries.append(kind(entry.name, entry.value, entry.group))
        monkeypatch.setattr(rule_packages, "entry_points", lambda **_: entries)
        package_rules.cache_clear()

    yield install
    package_rules.cache_clear()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ImportError("no module named numba"), "ImportError: no module named numba"),
        (SystemError("oh"), "SystemError: oh"),
        (provider(version=2), "needs version 2 of the rules' API, but this is version 1"),
        (SimpleNamespace(RULES=()), "needs version None"),
        (SimpleNamespace(STEPSCOPE_API=1), "it has no RULES"),
        (provider("a rule"), "'a rule' is not a stepscope.rules.Rule"),
        (provider(rule("item-sync")), "the id 'item-sync' must begin with bad/"),
        (provider(rule("bad/")), "the id 'bad/' must begin with bad/"),
        (provider(rule("bad/one"), rule("bad/one")), "another rule with the id bad/one"),
        (
            provider(dataclasses.replace(rule("bad/one"), options={"least_count": 3})),
            "the options of bad/one are not an instance of a dataclass",
        ),
    ],
)
def test_a_package_that_cannot_be_used_costs_its_own_rules(
    installed: Any, given: Any, message: str
) -> None:
    installed(bad=given, good=provider(rule("good/one")))
    rules, [problem] = package_rules()
    assert [each.id for each in rules] == ["good/one"]
    assert message in problem.message
    assert problem.path == "package bad_rules"
    assert "--no-plugins" in problem.remedy


def test_a_rule_says_which_package_it_comes_from(installed: Any) -> None:
    installed(good=provider(rule("good/one")))
    own = available_rules(has_packages=False)
    [found] = [each for each in available_rules() if each not in own]
    assert (found.id, found.package) == ("good/one", "good_rules")
    assert not any(each.package for each in own)
