"""A private RabbitMQ node: durable messages outlive it; neither it nor its epmd outlives its owner."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
from pathlib import Path

import pika
import psutil
import pytest

from private_services import PrivateRabbitMQ, ServiceError
from private_services.ports import LOOPBACK
from tests.private_services.owners import (
    OrdinaryUser,
    Owner,
    each_living,
    is_gone,
    listening_addresses,
    tree,
    wait_until_gone,
)
from tests.processes import eventually

pytestmark = pytest.mark.rabbitmq


def connect(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))


def publish_durably(url: str, queue: str, body: bytes) -> None:
    """Returns when the node has it on its disk."""
    with connect(url) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue, durable=True)
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True)


def take(url: str, queue: str) -> bytes | None:
    with connect(url) as connection:
        _, _, body = connection.channel().basic_get(queue, auto_ack=True)
        return body


def node_pid(folder: Path) -> int:
    return int((folder / "rabbitmq.pid").read_text())


def processes_of(node: PrivateRabbitMQ) -> list[psutil.Process]:
    """With the epmd that knows it, which is not the node's child but its owner's."""
    return [*tree(node_pid(node.folder)), *epmds(node.folder)]


def epmds(folder: Path) -> list[psutil.Process]:
    """Of this node, whoever is their parent: a daemon's is not its owner."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() == "epmd" and process.environ().get("HOME") == str(folder):
                found.append(process)
    return found


def test_a_stopped_node_leaves_its_data_and_no_process(rabbitmq: PrivateRabbitMQ) -> None:
    before = rabbitmq.url
    rabbitmq.start()
    publish_durably(rabbitmq.url, "stopped", b"kept")
    processes = processes_of(rabbitmq)
    assert "epmd" in each_living(processes, psutil.Process.name)
    rabbitmq.stop()
    assert not rabbitmq.running
    wait_until_gone(processes)
    assert epmds(rabbitmq.folder) == []
    rabbitmq.stop()
    rabbitmq.start()
    assert rabbitmq.url == before
    assert take(rabbitmq.url, "stopped") == b"kept"


def test_a_killed_node_comes_back_with_its_data(rabbitmq: PrivateRabbitMQ) -> None:
    """Its epmd dies before it here, and rabbitmqctl must not start another, which would outlive us."""
    before = rabbitmq.url
    publish_durably(rabbitmq.url, "killed", b"kept")
    processes = processes_of(rabbitmq)
    [epmd] = epmds(rabbitmq.folder)
    epmd.kill()
    with pytest.raises(ServiceError, match="rabbitmqctl status failed"):
        rabbitmq.ctl("status")
    assert all(map(is_gone, epmds(rabbitmq.folder)))
    rabbitmq.kill()
    assert all(map(is_gone, processes))
    rabbitmq.start()
    assert rabbitmq.url == before
    assert take(rabbitmq.url, "killed") == b"kept"


def test_a_node_that_somebody_else_killed_is_started_again_with_one_epmd(rabbitmq: PrivateRabbitMQ) -> None:
    publish_durably(rabbitmq.url, "murdered", b"kept")
    [first_epmd] = epmds(rabbitmq.folder)
    os.kill(node_pid(rabbitmq.folder), signal.SIGKILL)
    eventually(lambda: not rabbitmq.running, what="the death is noticed")
    rabbitmq.start()
    assert is_gone(first_epmd)
    assert len(epmds(rabbitmq.folder)) == 1
    assert take(rabbitmq.url, "murdered") == b"kept"


def test_a_node_never_outlives_its_owner(rabbitmq: PrivateRabbitMQ, tmp_path: Path) -> None:
    with Owner("rabbitmq", tmp_path) as owner:
        assert {"beam.smp", "epmd"} <= set(each_living(owner.processes, psutil.Process.name))
        owner.kill()
        wait_until_gone(owner.processes)
    assert epmds(tmp_path) == []
    assert PrivateRabbitMQ(tmp_path).url == owner.url


def test_an_ordinary_user_has_a_node_of_their_own(rabbitmq: PrivateRabbitMQ, ordinary: OrdinaryUser) -> None:
    with Owner("rabbitmq", ordinary.home / "rabbitmq", user=ordinary) as owner:
        publish_durably(owner.url, "ordinary", b"kept")
        assert take(owner.url, "ordinary") == b"kept"
        uids = each_living(owner.processes, psutil.Process.uids)
        assert set(uids) == {(ordinary.account.uid,) * 3}
        owner.stop()
        wait_until_gone(owner.processes)


def test_a_frozen_node_does_not_answer_and_goes_on_after_the_thaw(rabbitmq: PrivateRabbitMQ) -> None:
    greeting = b"AMQP\x00\x00\x09\x01"
    with socket.create_connection((LOOPBACK, rabbitmq.port)) as connection:
        rabbitmq.freeze()
        assert rabbitmq.running
        statuses = each_living(tree(node_pid(rabbitmq.folder)), psutil.Process.status)
        assert set(statuses) == {psutil.STATUS_STOPPED}
        connection.sendall(greeting)
        assert select.select([connection], [], [], 0.2)[0] == []
        rabbitmq.thaw()
        assert select.select([connection], [], [], 30)[0] == [connection]
        assert connection.recv(1) == b"\x01"
    publish_durably(rabbitmq.url, "thawed", b"kept")
    assert take(rabbitmq.url, "thawed") == b"kept"


def test_a_second_start_in_a_folder_in_use_is_refused(
    rabbitmq: PrivateRabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivateRabbitMQ, "predecessor_deadline", 0.1)
    second = PrivateRabbitMQ(rabbitmq.folder)
    with pytest.raises(ServiceError) as refusal:
        second.start()
    assert str(refusal.value) == f"another RabbitMQ runs in {rabbitmq.folder}: stop it first"
    second.stop()
    assert rabbitmq.running
    connect(rabbitmq.url).close()


def test_a_port_that_was_asked_for_and_is_taken_is_said(rabbitmq: PrivateRabbitMQ, tmp_path: Path) -> None:
    node = PrivateRabbitMQ(tmp_path, port=rabbitmq.port)
    with pytest.raises(ServiceError, match=f"port {rabbitmq.port} is used by another program"):
        node.start()
    assert epmds(tmp_path) == []


def test_nothing_listens_outside_the_loopback(rabbitmq: PrivateRabbitMQ) -> None:
    assert listening_addresses(processes_of(rabbitmq)) <= {LOOPBACK, "::1"}


def test_the_password_is_needed_and_kept_from_other_users(rabbitmq: PrivateRabbitMQ) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(rabbitmq.url.replace("@", "x@"))
    for name in ("rabbitmq.json", "rabbitmq.conf", "rabbitmq.log", ".erlang.cookie"):
        assert stat.S_IMODE((rabbitmq.folder / name).stat().st_mode) & 0o077 == 0, name


def test_ctl_speaks_to_this_node(rabbitmq: PrivateRabbitMQ) -> None:
    assert f"Status of node {rabbitmq._node}" in rabbitmq.ctl("status")
    with pytest.raises(ServiceError, match="rabbitmqctl no_such_command failed: "):
        rabbitmq.ctl("no_such_command")


def test_ctl_of_a_node_that_does_not_run_is_refused(rabbitmq: PrivateRabbitMQ, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=f"RabbitMQ in {tmp_path} does not run"):
        PrivateRabbitMQ(tmp_path).ctl("status")
