"""What all private services have in common: the folder and its memory, starts that fail, logs."""

from __future__ import annotations

import stat
from pathlib import Path

import psutil
import pytest

from private_services import PrivatePostgres, ServiceError, service
from private_services.children import Child
from tests.private_services.owners import postgres_pid, query


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server that was started and stopped before."""
    made = tmp_path_factory.mktemp("service")
    with PrivatePostgres(made):
        return made


def test_an_object_made_before_the_first_start_of_another_has_its_address(tmp_path: Path) -> None:
    """Otherwise its own password would replace the one that the data were made with, for ever."""
    first, second = PrivatePostgres(tmp_path), PrivatePostgres(tmp_path)
    with first:
        query(first.url, "create table kept as select 42 as answer")
    with second:
        assert second.url == first.url
        assert query(second.url, "select answer from kept") == [(42,)]
    with PrivatePostgres(tmp_path) as third:
        assert query(third.url, "select answer from kept") == [(42,)]


def test_a_port_that_was_asked_for_goes_over_the_remembered_one(folder: Path) -> None:
    remembered = PrivatePostgres(folder).port
    asked = PrivatePostgres(folder, port=service.free_port())
    assert asked.port != remembered
    with asked:
        assert query(asked.url, "select inet_server_port()") == [(asked.port,)]


@pytest.mark.parametrize("moment", [(Child, "wait"), (PrivatePostgres, "_ready")], ids=["initdb", "server"])
def test_an_interrupted_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: tuple[type, str]
) -> None:
    started: set[psutil.Process] = set()
    before = set(psutil.Process().children())

    def interrupt(*_: object) -> bool:
        started.update(set(psutil.Process().children()) - before)
        raise KeyboardInterrupt

    monkeypatch.setattr(*moment, interrupt)
    server = PrivatePostgres(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    assert not server.running
    assert len(started) == 1
    assert not any(process.is_running() for process in started)


def test_a_start_that_takes_too_long_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivatePostgres, "start_deadline", 0.0)
    monkeypatch.setattr(PrivatePostgres, "_ready", lambda self, child: False)
    server = PrivatePostgres(folder)
    with pytest.raises(ServiceError, match=r"is not ready after 0 s; the end of .*postgresql\.log"):
        server.start()
    assert not server.running


def test_a_server_that_does_not_stop_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivatePostgres, "stop_deadline", 0.0)
    monkeypatch.setattr(Child, "signal", lambda self, number: None)
    server = PrivatePostgres(folder)
    server.start()
    process = psutil.Process(postgres_pid(folder))
    server.stop()
    assert not process.is_running()


def test_a_port_taken_between_choice_and_start_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server itself finds it taken; the second attempt has another."""
    rival = PrivatePostgres(tmp_path / "rival")
    with rival:
        server = PrivatePostgres(tmp_path / "postgres")
        server._port = rival.port
        answers = iter([True, True])
        real = service.is_free
        monkeypatch.setattr(service, "is_free", lambda port: next(answers, None) or real(port))
        with server:
            assert server.port != rival.port
            assert query(server.url, "select 1") == [(1,)]


@pytest.mark.parametrize("content", ["", "{", "[1]", "null"])
def test_a_damaged_memory_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "postgresql.json").write_text(content)
    with pytest.raises(ServiceError, match=r"postgresql\.json cannot be read: "):
        PrivatePostgres(tmp_path)


def test_a_long_log_is_set_aside_at_the_next_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = PrivatePostgres(folder)
    for text in ("oldest\n", "older\n"):
        server.log_file.write_text(text)
        monkeypatch.setattr(service, "LOG_LIMIT", 1)
        with server:
            assert text.strip() not in server.log_file.read_text()
        assert (folder / "postgresql.log.old").read_text() == text
        assert stat.S_IMODE(server.log_file.stat().st_mode) == 0o600


def test_a_short_log_is_continued(folder: Path) -> None:
    server = PrivatePostgres(folder)
    server.log_file.write_text("first run\n")
    with server:
        assert server.log_file.read_text().startswith("first run\n")
