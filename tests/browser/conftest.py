"""The browser and the servers that the tests of the page share."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from browser import servers
from browser.servers import Server
from browser.visits import PATIENCE_MS, Visit, visit

SAMPLE_LOGS = Path(__file__).resolve().parents[2] / "sample_logs"
FEW = ("synthetic_dataloader", "synthetic_item_sync", "masking")
"""A few samples for where only the way to them differs: with a device, and without."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS), timeout=PATIENCE_MS
        )
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def few_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    for name in FEW:
        (folder / name).symlink_to(SAMPLE_LOGS / name)
    return folder


def tensorboard_on(
    logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> AbstractContextManager[Server]:
    log = tmp_path_factory.mktemp("server") / "log"
    return servers.tensorboard(log, "--logdir", str(logs), "--load_fast=false")


@pytest.fixture(scope="session")
def all_samples_server(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Server]:
    assert chromium
    with tensorboard_on(SAMPLE_LOGS, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def tensorboard_server(
    tmp_path_factory: pytest.TempPathFactory, few_samples: Path, chromium: str
) -> Iterator[Server]:
    assert chromium
    with tensorboard_on(few_samples, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def stand_alone_server(
    tmp_path_factory: pytest.TempPathFactory, few_samples: Path, chromium: str
) -> Iterator[Server]:
    assert chromium
    log = tmp_path_factory.mktemp("server") / "log"
    with servers.stand_alone(log, few_samples) as server:
        yield server


@pytest.fixture
def all_in_tensorboard(context: BrowserContext, all_samples_server: Server) -> Visit:
    return visit(context, all_samples_server)


@pytest.fixture
def in_tensorboard(context: BrowserContext, tensorboard_server: Server) -> Visit:
    return visit(context, tensorboard_server)


@pytest.fixture
def alone(context: BrowserContext, stand_alone_server: Server) -> Visit:
    return visit(context, stand_alone_server)
