"""The TensorBoard plugin.

TensorBoard imports this module at its start, and a failing import stops TensorBoard. Therefore only
modules that TensorBoard has already loaded are imported at the top; the first request imports the
rest.
"""

from tensorboard.plugins import base_plugin

# type checkers treat this name as True; importing `typing` takes longer than all the rest
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from stepscope.advice import AdviceSettings
    from stepscope.base.config import Settings
    from stepscope.catalog.catalog import Catalog
    from stepscope.catalog.log_directories import LogDirectory

NAME = "stepscope"
DRIVE = r"[a-zA-Z]:[\\/]"


class StepscopeLoader(base_plugin.TBLoader):  # type: ignore[misc] # TensorBoard has no types
    """Creates the plugin when TensorBoard starts."""

    def define_flags(self, parser: "ArgumentParser") -> None:
        """Add stepscope's options; the environment is the default."""
        group = parser.add_argument_group("stepscope plugin")
        group.add_argument(
            "--stepscope_jobs", type=int, metavar="N", help="Traces read at once (STEPSCOPE_JOBS)."
        )
        group.add_argument(
            "--stepscope_memory",
            metavar="SIZE",
            help="Memory for reading and caching traces, such as 8G (STEPSCOPE_MEMORY).",
        )
        group.add_argument(
            "--stepscope_cache",
            metavar="FOLDER",
            nargs="?",
            const="1",
            help="Cache the columns of large traces on disk (STEPSCOPE_CACHE).",
        )
        group.add_argument(
            "--stepscope_scheduler",
            metavar="ADDRESS",
            help="Dask cluster that reads the traces: tcp://HOST:8786 (STEPSCOPE_SCHEDULER).",
        )
        group.add_argument(
            "--stepscope_summaries",
            metavar="LOCATION",
            help="Store of the summaries of large runs: a folder, s3://BUCKET/PREFIX, or 0 for"
            " none (STEPSCOPE_SUMMARIES).",
        )
        group.add_argument(
            "--stepscope_response_seconds",
            type=int,
            metavar="N",
            help="Time limit of a response (STEPSCOPE_RESPONSE_SECONDS).",
        )
        group.add_argument(
            "--stepscope_config",
            metavar="FILE",
            help="Rules, their options and suppressions: a stepscope.toml or pyproject.toml.",
        )

    def load(self, context: base_plugin.TBContext) -> "StepscopePlugin":
        """Return the plugin; TensorBoard logs exceptions and continues."""
        return StepscopePlugin(context)


class StepscopePlugin(base_plugin.TBPlugin):  # type: ignore[misc] # TensorBoard has no types
    """The tab: the stand-alone app, mounted under TensorBoard's path for the plugin."""

    plugin_name = NAME

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Start scanning the log directories for traces."""
        from stepscope.api.catalog_factory import catalog_for, cluster_of

        specification = getattr(context.flags, "logdir_spec", "") or ""
        directories = log_directories(context.logdir or "", specification)
        settings = plugin_settings(context.flags)
        advice = plugin_advice(context.flags)
        self._catalog = catalog_for(directories, settings, advice, cluster_of(settings))
        self._catalog.watch()

    def is_active(self) -> bool:
        """Return whether there is any trace."""
        return self._catalog.has_traces

    def get_plugin_apps(self) -> dict[str, "WSGIApplication"]:
        """Return the app for everything below the plugin's path."""
        return {"/*": mounted(_LazyApp(self._catalog))}

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Return the page's module and the tab's name."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Stepscope")


def plugin_settings(flags: "Namespace") -> "Settings":
    """Return the settings from the options and the environment."""
    from stepscope.base.config import settings

    return settings(
        jobs=getattr(flags, "stepscope_jobs", None),
        memory=getattr(flags, "stepscope_memory", None),
        cache=getattr(flags, "stepscope_cache", None),
        scheduler=getattr(flags, "stepscope_scheduler", None),
        summaries=getattr(flags, "stepscope_summaries", None),
        response_seconds=getattr(flags, "stepscope_response_seconds", None),
    )


def plugin_advice(flags: "Namespace") -> "AdviceSettings | None":
    """Return the advice settings from the file of the option, or None without one."""
    path = getattr(flags, "stepscope_config", None)
    if not path:
        return None
    from pathlib import Path

    from stepscope.advice.settings import validated
    from stepscope.advice.settings_files import read_settings

    return validated(read_settings(Path(path)))


class _LazyApp:
    """The app, created at the first request: it imports Flask and pandas."""

    def __init__(self, catalog: "Catalog") -> None:
        from threading import Lock

        self._catalog = catalog
        self._lock = Lock()
        self._app: WSGIApplication | None = None

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        with self._lock:
            if self._app is None:
                from stepscope.api.app import create_app
                from stepscope.api.request_gate import gated

                seconds = self._catalog.settings.response_seconds
                self._app = gated(create_app(self._catalog, response_seconds=seconds))
        return self._app(environ, start_response)


def mounted(app: "WSGIApplication") -> "WSGIApplication":
    """Move TensorBoard's path for the plugin from the path to the script name."""

    def at_prefix(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        before, prefix, path = environ["PATH_INFO"].partition(f"/data/plugin/{NAME}")
        script = environ.get("SCRIPT_NAME", "") + before + prefix
        return app({**environ, "SCRIPT_NAME": script, "PATH_INFO": path}, start_response)

    return at_prefix


def log_directories(logdir: str, specification: str = "") -> "tuple[LogDirectory, ...]":
    """Return the folders of `--logdir` or `--logdir_spec`.

    The grammar is TensorBoard's: `name:path,name2:path2`, with optional names. Several folders
    without names are named by their paths, so that their runs differ.
    """
    if not specification:
        return (_directory("", logdir),) if logdir else ()
    from stepscope.base.urls import redacted

    entries = [_entry(text) for text in specification.split(",") if text]
    if len(entries) == 1:
        return (_directory(*entries[0]),)
    return tuple(_directory(name or redacted(path), path) for name, path in entries)


def _entry(text: str) -> tuple[str, str]:
    import re

    from stepscope.base.urls import is_remote

    is_path = text.startswith("/") or is_remote(text) or re.match(DRIVE, text)
    name, colon, path = text.partition(":")
    return (name, path) if colon and not is_path else ("", text)


def _directory(name: str, path: str) -> "LogDirectory":
    from pathlib import Path

    from stepscope.base.urls import is_remote
    from stepscope.catalog.log_directories import LogDirectory

    full = path if is_remote(path) else str(Path(path).expanduser())
    return LogDirectory(path=full, name=name)
