"""`chronos up`: everything on embedded parts in one terminal; a second start continues where the first was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from chronos.config import settings
from chronos.db import Database
from chronos.engine import schema
from chronos.housekeeping import JOBS
from chronos.runtime import running_file, runtime
from private_services import PrivatePostgres, PrivateRabbitMQ, ServiceError


def up(rabbitmq: bool) -> int:
    configuration = settings()
    folder = configuration.data_dir
    services: list[Any] = []
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.stderr.write(
            f"chronos: cannot write to {folder}: {error.strerror}; set CHRONOS_DATA_DIR to another folder\n"
        )
        return 2
    environment = dict(os.environ)
    try:
        if configuration.database_url is None:
            started = time.monotonic()
            postgres = PrivatePostgres(folder / "postgres")
            postgres.start()
            services.append(postgres)
            configuration.database_url = SecretStr(postgres.url)
            environment["CHRONOS_DATABASE_URL"] = postgres.url
            _say("PostgreSQL (embedded)", f"ready in {time.monotonic() - started:.1f} s", f"data  {folder}")
        else:
            _say("PostgreSQL", "yours", "CHRONOS_DATABASE_URL")
        if rabbitmq and configuration.amqp_url is None:
            broker = PrivateRabbitMQ(folder / "rabbitmq")
            broker.start()
            services.append(broker)
            environment["CHRONOS_AMQP_URL"] = broker.url
        url = configuration.database_url.get_secret_value()
        database = Database(url, configuration)
        schema.upgrade(database)
        database.close()
        _remember(running_file(configuration), url)
        log = open(folder / "logs" / "worker.log", "ab")  # noqa: SIM115
        worker = subprocess.Popen(
            [sys.executable, "-m", "chronos.cli", "worker", "-p", "1", "-t", "8"],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()
        try:
            kind = (
                "RabbitMQ"
                if environment.get("CHRONOS_AMQP_URL")
                else "in-process broker (RabbitMQ: chronos up --rabbitmq)"
            )
            _say("worker", "8 threads", kind)
            sys.stdout.write(
                f'\nTry   chronos doctor\n      chronos task submit ping \'{{"say": "hello"}}\'\n'
                f"      chronos queue list\nLogs  {folder / 'logs'}\nStop  Ctrl-C (a second start continues)\n"
            )
            sys.stdout.flush()
            return _wait(worker)
        finally:
            running_file(configuration).unlink(missing_ok=True)
            if worker.poll() is None:
                worker.terminate()
                worker.wait(configuration.shutdown_seconds + 10)
    except ServiceError as error:
        sys.stderr.write(f"chronos: {error}\n")
        return 1
    finally:
        for service in reversed(services):
            service.stop()


def _say(part: str, state: str, more: str) -> None:
    sys.stdout.write(f"{part:24} {state:20} {more}\n")
    sys.stdout.flush()


def _remember(file: Path, url: str) -> None:
    file.touch(mode=0o600)
    file.write_text(url, encoding="utf-8")


def _wait(worker: subprocess.Popen[bytes]) -> int:
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    from chronos.actors.housekeeping import (
        tick,
    )  # declaring actors needs the database's address, known by now

    minute = int(time.time() // 60)
    while not stopped.wait(0.2):
        if worker.poll() is not None:
            sys.stderr.write("chronos: the worker ended; its log says why\n")
            return 1
        if (now := int(time.time() // 60)) != minute:
            minute = now
            for job, (spec, _) in JOBS.items():
                if spec.split()[0] in ("*", str(now % 60)):
                    tick(job)
    sys.stdout.write("stopping: running work is finished or handed back\n")
    sys.stdout.flush()
    worker.terminate()
    code = worker.wait()
    runtime().database.close()
    sys.stdout.write("stopped, nothing lost\n")
    return 0 if code == 0 else 1
