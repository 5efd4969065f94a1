"""Real servers for every test: one private PostgreSQL and one private RabbitMQ per run, one database per test."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import psycopg
import pytest
from dramatiq.common import xq_name

from chronos.config import Settings
from chronos.db import Database
from chronos.engine import schema
from chronos.queues import POLICIES
from chronos.runtime import Runtime
from private_services import PrivatePostgres, PrivateRabbitMQ, install_rabbitmq
from tests.missing import NOT_TESTED, miss, one_at_a_time
from tests.processes import Workers

TEMPLATE = "chronos_template"


@pytest.fixture(scope="session")
def service_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="chronos-tests-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(service_folder: Path) -> Iterator[PrivatePostgres]:
    with PrivatePostgres(service_folder / "postgres") as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create database {TEMPLATE}")
        database = Database(_named(server.url, TEMPLATE), Settings())
        schema.upgrade(database)
        database.close()
        yield server


@pytest.fixture(scope="session")
def rabbitmq(service_folder: Path) -> Iterator[PrivateRabbitMQ]:
    with one_at_a_time():
        if PrivateRabbitMQ.available() is not None:
            install_rabbitmq()
    if (why := PrivateRabbitMQ.available()) is not None:
        miss("everything that needs RabbitMQ", why)
    with PrivateRabbitMQ(service_folder / "rabbitmq") as server:
        yield server


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_tested"] = NOT_TESTED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """One of several processes that run the tests has ended."""
    NOT_TESTED.update(getattr(node, "workeroutput", {}).get("not_tested", {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """After all other summaries: a long list of skipped tests must not push it out of sight."""
    yield
    for what, why in NOT_TESTED.items():
        terminalreporter.write_line(f"NOT TESTED: {what}. {why}", red=True, bold=True)


@pytest.fixture
def database_url(postgres: PrivatePostgres) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {TEMPLATE}")
    yield _named(postgres.url, name)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


def _named(url: str, name: str) -> str:
    return url.rsplit("/", 1)[0] + "/" + name


@pytest.fixture
def amqp_url(rabbitmq: PrivateRabbitMQ) -> Iterator[str]:
    """Each test finds RabbitMQ without queues: no message of one reaches another."""
    yield rabbitmq.url
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq.url))
    for queue in POLICIES:
        connection.channel().queue_delete(queue)
        connection.channel().queue_delete(xq_name(queue))
    connection.close()


@pytest.fixture
def runtime(database_url: str) -> Iterator[Runtime]:
    """The front door's side, on the embedded broker: nothing runs unless a test starts a worker."""
    made = Runtime(Settings(database_url=database_url, lease_seconds=2))
    yield made
    made.close()


@pytest.fixture
def workers(database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Workers]:
    """Real worker processes on RabbitMQ, lease 2 s."""
    group = Workers(database_url, amqp_url, tmp_path)
    yield group
    group.end()


@pytest.fixture
def embedded(database_url: str, tmp_path: Path) -> Iterator[Workers]:
    """The same on the in-process broker."""
    group = Workers(database_url, None, tmp_path)
    yield group
    group.end()
