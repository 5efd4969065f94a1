"""Every system is told plainly what it can have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from private_services import ServiceError, platforms, rabbitmq_installation, supported
from private_services.postgres_binaries import PostgresBinaries
from tests.processes import ROOT


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "find_binaries", lambda: PostgresBinaries(Path("/pg/bin"), 17))
    monkeypatch.setattr(platforms, "why_not_usable", lambda: None)
    monkeypatch.setattr(platforms, "rabbitmq_scripts", lambda: Path("/rabbit/bin"))


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("linux", "Linux: the kernel ends the services when their owner ends"),
        ("darwin", "macOS (not tested): a watcher process ends the services when their owner ends"),
    ],
)
def test_a_supported_system_is_told_what_it_has(platform: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert supported() == f"{words}; PostgreSQL 17 in /pg/bin; RabbitMQ in /rabbit/bin"


def test_what_is_missing_is_said_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> PostgresBinaries:
        raise ServiceError("PostgreSQL 14 or newer is not on this machine: install it")

    monkeypatch.setattr(platforms, "find_binaries", missing)
    monkeypatch.setattr(rabbitmq_installation, "SCRIPT_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert supported() == (
        "macOS (not tested): a watcher process ends the services when their owner ends; "
        "PostgreSQL 14 or newer is not on this machine: install it; "
        "RabbitMQ is not installed: brew install rabbitmq"
    )


@pytest.mark.parametrize("platform", ["freebsd14", "win32"])
def test_another_system_is_told_that_it_is_not_supported(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert supported() == f"{platform}: not supported; use Linux, macOS or WSL"


def test_windows_is_told_so_when_it_imports_the_package() -> None:
    """Before it is told that it has no module fcntl."""
    program = """
import sys
sys.platform = "win32"
sys.modules["fcntl"] = sys.modules["pwd"] = None
try:
    import private_services
except ImportError as error:
    sys.exit(str(error))
"""
    finished = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.stderr == "win32: not supported; use Linux, macOS or WSL\n"
