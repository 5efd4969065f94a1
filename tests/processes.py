"""Worker processes that tests start, kill and look at."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from chronos.config import Settings
from chronos.runtime import Runtime

ROOT = Path(__file__).resolve().parent.parent


def eventually(check: Callable[[], Any], seconds: float = 30, what: str = "") -> Any:
    """Poll until the check is true; its last value. Fails with `what` at the deadline."""
    ends = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < ends, f"not within {seconds} s: {what or check}"
        time.sleep(0.05)
    return value


def pass_time(seconds: float) -> None:
    """For a fault that is a matter of time: a server that is away for so long."""
    threading.Event().wait(seconds)


class Workers:
    def __init__(self, database_url: str, amqp_url: str | None, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "CHRONOS_DATABASE_URL": database_url,
            "CHRONOS_LEASE_SECONDS": "2",
            "CHRONOS_ACTORS": "tests.workload",
            "PYTHONPATH": str(ROOT),
        }
        if amqp_url:
            self.environment["CHRONOS_AMQP_URL"] = amqp_url
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.runtime = Runtime(Settings(database_url=database_url, amqp_url=amqp_url, lease_seconds=2))

    def start(self, count: int = 1, threads: int = 4, **environment: str) -> list[subprocess.Popen[bytes]]:
        """Each is a dramatiq master with one worker process, so that one may die alone."""
        before = self.sql("select count(*) from workers")[0][0]
        started = []
        for _ in range(count):
            log = open(self.folder / f"worker{len(self.processes)}.log", "wb")  # noqa: SIM115
            process = subprocess.Popen(
                [sys.executable, "-m", "dramatiq", "chronos.actors", "-p", "1", "-t", str(threads)],
                env={**self.environment, **environment},
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            log.close()
            self.processes.append(process)
            started.append(process)
        eventually(
            lambda: self.sql("select count(*) from workers")[0][0] >= before + count,
            what=f"workers up\n{self.logs()}",
        )
        return started

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("worker*.log")))

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                self.kill(process)
        self.runtime.close()

    def sql(self, statement: str, **values: Any) -> list[Any]:
        with self.runtime.database.statement() as connection:
            return list(connection.execute(text(statement), values).all())

    def statuses(self) -> dict[str, int]:
        return {row[0]: row[1] for row in self.sql("select status, count(*) from tasks group by 1")}

    def all_final(self, seconds: float = 60) -> dict[str, int]:
        eventually(
            lambda: not {"pending", "in_progress"} & set(self.statuses()),
            seconds,
            f"all tasks final; {self.statuses()}",
        )
        return self.statuses()


class Effects:
    """A small HTTP server that logs every effect: the judge of what really happened."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.hold = threading.Event()
        self.hold.set()
        effects = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                effects.made.append(self.path.strip("/"))
                effects.hold.wait(30)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """The list is the log."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda request, address: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def effects_server() -> Iterator[Effects]:
    server = Effects()
    try:
        yield server
    finally:
        server.close()
