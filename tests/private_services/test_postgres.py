"""A private PostgreSQL: its data outlive it, it does not outlive its owner, and it bothers nobody else."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from private_services import PrivatePostgres, ServiceError
from private_services.accounts import unprivileged_account
from private_services.ports import LOOPBACK
from private_services.postgres_binaries import find_binaries, runnable_by
from tests.private_services.owners import (
    OrdinaryUser,
    Owner,
    each_living,
    is_gone,
    listening_addresses,
    postgres_pid,
    query,
    tree,
    wait_until_gone,
)
from tests.processes import ROOT, eventually


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivatePostgres]:
    """Runs at the start of every test that leaves it running."""
    with PrivatePostgres(tmp_path_factory.mktemp("postgres")) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has data already; no server runs in it."""
    made = tmp_path_factory.mktemp("owned")
    with PrivatePostgres(made):
        return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivatePostgres, "predecessor_deadline", 0.1)


def test_a_stopped_server_leaves_its_data_and_no_process(tmp_path: Path) -> None:
    server = PrivatePostgres(tmp_path)
    assert not server.running
    server.start()
    server.start()
    assert server.running
    query(server.url, "create table kept as select 42 as answer")
    processes = tree(postgres_pid(tmp_path))
    server.stop()
    server.stop()
    assert not server.running
    assert all(map(is_gone, processes))
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(server.url)
    before = server.url
    with server:
        assert server.url == before
        assert query(server.url, "select answer from kept") == [(42,)]
    with PrivatePostgres(tmp_path) as successor:
        assert successor.url == before
        assert query(before, "select answer from kept") == [(42,)]


def test_a_killed_server_comes_back_with_its_data(server: PrivatePostgres) -> None:
    before = server.url
    query(server.url, "create table survives (number int)")
    query(server.url, "insert into survives select generate_series(1, 1000)")
    processes = tree(postgres_pid(server.folder))
    server.kill()
    assert not server.running
    assert all(map(is_gone, processes))
    server.start()
    assert server.url == before
    assert query(server.url, "select count(*) from survives") == [(1000,)]


def test_a_server_that_somebody_else_killed_is_started_again(server: PrivatePostgres) -> None:
    os.kill(postgres_pid(server.folder), signal.SIGKILL)
    eventually(lambda: not server.running, what="the death is noticed")
    server.start()
    assert query(server.url, "select 1") == [(1,)]


def test_restart_keeps_the_address(server: PrivatePostgres) -> None:
    before, first = server.url, server.pid
    assert first == postgres_pid(server.folder)
    server.restart()
    assert server.url == before
    assert server.pid == postgres_pid(server.folder) != first
    assert query(server.url, "select 1") == [(1,)]


def test_a_server_never_outlives_its_owner(folder: Path) -> None:
    """Not even a session in the middle of a long query; and the next owner need not wait for anything."""
    with Owner("postgres", folder) as owner:
        query(owner.url, "create table kept as select 42 as answer")
        session = psycopg.connect(owner.url, autocommit=True)
        session.pgconn.send_query(b"select count(*) from (select generate_series(1, 1000000000000)) endless")
        eventually(
            lambda: query(owner.url, "select 1 from pg_stat_activity where query like '%endless'"),
            what="the long query runs",
        )
        owner.kill()
        wait_until_gone(owner.processes)
        session.close()
    with PrivatePostgres(folder) as successor:
        assert successor.url == owner.url
        assert query(owner.url, "select answer from kept") == [(42,)]


def test_a_frozen_server_does_not_outlive_its_owner_either(folder: Path) -> None:
    with Owner("postgres", folder) as owner:
        owner.tell("freeze")
        owner.kill()
        wait_until_gone(owner.processes)


def test_a_server_thawed_again_does_not_outlive_its_owner_either(folder: Path) -> None:
    with Owner("postgres", folder) as owner:
        owner.tell("freeze")
        owner.tell("thaw")
        owner.kill()
        wait_until_gone(owner.processes)


@pytest.mark.usefixtures("impatient")
def test_an_owner_killed_while_the_data_are_made_leaves_a_usable_folder(tmp_path: Path) -> None:
    """Usable when the last of its processes is gone: what initdb starts sees the death of initdb late."""
    program = f"from private_services import *; PrivatePostgres({str(tmp_path)!r}).start()"
    owner = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    eventually((tmp_path / "data.new").exists, what="initdb is at work")
    straggler = eventually(lambda: _stopped_server_below(owner.pid), what="initdb has started a server")
    owner.kill()
    owner.wait(10)
    server = PrivatePostgres(tmp_path)
    with pytest.raises(ServiceError, match="another PostgreSQL runs"):
        server.start()
    straggler.resume()
    wait_until_gone([straggler])
    with server:
        assert query(server.url, "select 1") == [(1,)]


def _stopped_server_below(pid: int) -> psutil.Process | None:
    for process in tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() == "postgres" and any(above.name() == "initdb" for above in process.parents()):
                process.suspend()
                if process.status() == psutil.STATUS_STOPPED:
                    return process
    return None


@pytest.mark.usefixtures("impatient")
def test_a_second_start_in_a_folder_in_use_is_refused(server: PrivatePostgres) -> None:
    second = PrivatePostgres(server.folder)
    with pytest.raises(ServiceError) as refusal:
        second.start()
    assert str(refusal.value) == f"another PostgreSQL runs in {server.folder}: stop it first"
    assert not second.running
    second.stop()
    assert query(server.url, "select 1") == [(1,)]


def test_a_server_that_does_not_hold_the_lock_is_found_by_its_pid_file(server: PrivatePostgres) -> None:
    (server.folder / "lock").unlink()
    second = PrivatePostgres(server.folder)
    pid = postgres_pid(server.folder)
    with pytest.raises(ServiceError, match=rf"another PostgreSQL \(process {pid}\) runs in "):
        second.start()
    assert postgres_pid(server.folder) == pid
    assert query(server.url, "select 1") == [(1,)]
    server.restart()


def test_a_pid_file_that_names_a_server_of_another_folder_is_stale(server: PrivatePostgres, folder: Path) -> None:
    """Numbers of processes come again, above all in containers, where they begin at 1 after every start."""
    with PrivatePostgres(folder) as other:
        other.kill()
        pid_file = folder / "data" / "postmaster.pid"
        _, *rest = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(postgres_pid(server.folder)), *rest]) + "\n")
        other.start()
        assert query(other.url, "select 1") == [(1,)]
    assert query(server.url, "select 1") == [(1,)]


def test_a_remembered_port_that_another_program_has_is_replaced(folder: Path) -> None:
    taken = PrivatePostgres(folder).port
    with socket.create_server((LOOPBACK, taken)), PrivatePostgres(folder) as second:
        assert second.port != taken
        assert query(second.url, "select 1") == [(1,)]


def test_a_port_that_was_asked_for_and_is_taken_is_said(folder: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        server = PrivatePostgres(folder, port=port)
        with pytest.raises(ServiceError, match=f"PostgreSQL cannot start: port {port} is used by another program"):
            server.start()
        assert not server.running


def test_an_address_that_clients_hold_is_not_changed(server: PrivatePostgres) -> None:
    server.kill()
    with (
        socket.create_server((LOOPBACK, server.port)),
        pytest.raises(ServiceError, match=f"port {server.port} is used by another program"),
    ):
        server.start()
    server.start()
    assert query(server.url, "select 1") == [(1,)]


def test_nothing_listens_outside_the_loopback(server: PrivatePostgres) -> None:
    assert listening_addresses(tree(postgres_pid(server.folder))) == {LOOPBACK}


def test_the_password_is_needed_and_kept_from_other_users(server: PrivatePostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url, password="wrong")
    for file in (server.folder / "postgresql.json", server.log_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_it_makes_is_closed_to_other_users(tmp_path: Path) -> None:
    with PrivatePostgres(tmp_path / "a" / "b") as server:
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700


def test_an_ordinary_user_has_a_server_of_their_own(ordinary: OrdinaryUser) -> None:
    folder = ordinary.home / "postgres"
    binaries = runnable_by(ordinary.account, find_binaries()).folder
    with Owner("postgres", folder, binaries, user=ordinary) as owner:
        query(owner.url, "create table kept as select 42 as answer")
        processes = tree(postgres_pid(folder))
        assert set(each_living(processes, psutil.Process.uids)) == {(ordinary.account.uid,) * 3}
        assert (folder / "postgresql.json").stat().st_uid == ordinary.account.uid
        owner.stop()
        assert all(map(is_gone, processes))
    with Owner("postgres", folder, binaries, user=ordinary) as owner:
        assert query(owner.url, "select answer from kept") == [(42,)]
        owner.kill()
        wait_until_gone(owner.processes)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_root_has_a_server_that_does_not_run_as_root(server: PrivatePostgres) -> None:
    account = unprivileged_account()
    assert account is not None
    processes = tree(postgres_pid(server.folder))
    assert set(each_living(processes, psutil.Process.uids)) == {(account.uid,) * 3}
    assert set(each_living(processes, psutil.Process.gids)) == {(account.gid,) * 3}
    assert server.data.stat().st_uid == account.uid


def test_a_frozen_server_keeps_its_connections_and_answers_after_the_thaw(server: PrivatePostgres) -> None:
    with psycopg.connect(server.url, autocommit=True) as session:
        server.freeze()
        assert server.running
        statuses = each_living(tree(postgres_pid(server.folder)), psutil.Process.status)
        assert set(statuses) == {psutil.STATUS_STOPPED}
        session.pgconn.send_query(b"select 1")
        session.pgconn.flush()
        assert select.select([session.pgconn.socket], [], [], 0.2)[0] == []
        server.thaw()
        assert select.select([session.pgconn.socket], [], [], 30)[0] == [session.pgconn.socket]
        result = session.pgconn.get_result()
        assert result is not None
        assert result.get_value(0, 0) == b"1"
        assert session.pgconn.get_result() is None


def test_a_frozen_server_is_stopped_in_good_order(server: PrivatePostgres) -> None:
    processes = tree(postgres_pid(server.folder))
    server.freeze()
    server.stop()
    assert all(map(is_gone, processes))
    assert server.log_file.read_text().endswith("database system is shut down\n")
    server.start()


def test_a_frozen_server_can_be_killed(server: PrivatePostgres) -> None:
    processes = tree(postgres_pid(server.folder))
    server.freeze()
    server.kill()
    assert all(map(is_gone, processes))
    server.start()
    assert query(server.url, "select 1") == [(1,)]


def test_a_frozen_server_that_somebody_else_killed_leaves_no_process(server: PrivatePostgres) -> None:
    """Neither its frozen sessions, which nothing else would ever end, nor the watcher."""
    processes = tree(postgres_pid(server.folder))
    before = set(psutil.Process().children())
    server.freeze()
    [watcher] = set(psutil.Process().children()) - before
    os.kill(postgres_pid(server.folder), signal.SIGKILL)
    eventually(lambda: not server.running, what="the death is noticed")
    server.stop()
    assert all(map(is_gone, processes))
    assert not watcher.is_running()
    server.start()
    assert query(server.url, "select 1") == [(1,)]


@pytest.mark.parametrize("verb", [PrivatePostgres.freeze, PrivatePostgres.thaw])
def test_what_does_not_run_can_be_neither_frozen_nor_thawed(tmp_path: Path, verb: object) -> None:
    assert callable(verb)
    with pytest.raises(ServiceError, match=f"PostgreSQL in {tmp_path} does not run"):
        verb(PrivatePostgres(tmp_path))


def test_a_server_outlives_the_thread_that_started_it(server: PrivatePostgres) -> None:
    server.stop()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    assert query(server.url, "select 1") == [(1,)]


def test_a_forked_copy_of_the_owner_ends_nothing(folder: Path) -> None:
    """In a program of its own, because a fork copies the threads' locks of this one."""
    program = """
import os, sys, pathlib, private_services
server = private_services.PrivatePostgres(pathlib.Path(sys.argv[1]))
server.start()
child = os.fork()
if not child:
    os._exit(10 * server.running + (server.stop() or server.kill() or 0))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the copy runs nothing"
assert server.running
os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), 0)
server.stop()
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_settings_go_over_ours(folder: Path) -> None:
    with PrivatePostgres(folder, settings={"max_connections": "17"}) as server:
        assert query(server.url, "show max_connections") == [("17",)]
        assert query(server.url, "show timezone") == [("UTC",)]


def test_a_server_that_cannot_start_says_what_its_log_says(folder: Path) -> None:
    server = PrivatePostgres(folder, settings={"shared_buffers": "a lot"})
    with pytest.raises(ServiceError, match=r'ended at once \(exit code 1\)(.|\n)*shared_buffers.*"a lot"'):
        server.start()
    assert not server.running
