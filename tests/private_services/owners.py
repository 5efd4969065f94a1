"""Processes that own a service, and the processes of that service, as tests see them from outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from private_services.accounts import Account
from tests.processes import ROOT, eventually

PROGRAM = Path(__file__).with_name("owner.py")


@dataclass(frozen=True)
class OrdinaryUser:
    """Somebody who is not root, with all that the program of an owner needs."""

    account: Account
    home: Path
    python: str

    @property
    def library(self) -> Path:
        return self.home / "library"


class Owner:
    """One run of owner.py; returns from the constructor when the service accepts connections."""

    def __init__(self, kind: str, folder: Path, *options: str | Path, user: OrdinaryUser | None = None) -> None:
        identity: dict[str, Any] = {}
        python, program, libraries = sys.executable, PROGRAM, [str(ROOT), os.environ.get("PYTHONPATH", "")]
        if user is not None:
            python, program, libraries = user.python, user.library / PROGRAM.name, [str(user.library)]
            identity = {"user": user.account.uid, "group": user.account.gid, "extra_groups": []}
        self._popen = subprocess.Popen(
            [python, program, kind, folder, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, libraries))},
            **identity,
        )
        #: The servers and all that they made, as they were when the service was ready, or at kill().
        self.processes: list[psutil.Process] = []
        try:
            self.url: str = self._told()["url"]
            self.processes = tree(self._popen.pid)[1:]
        except BaseException:
            self.kill()
            raise

    def tell(self, verb: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(verb + "\n")
        self._popen.stdin.flush()
        assert self._told() == {"done": verb}

    def stop(self) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        assert self._told() == {"running": False}
        assert self._popen.wait(30) == 0
        self._close()

    def kill(self) -> None:
        """kill -9 of the owner alone."""
        if self._popen.poll() is None:
            self.processes = tree(self._popen.pid)[1:]
            self._popen.kill()
            self._popen.wait(10)
        self._close()

    def _told(self) -> dict[str, Any]:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        assert line, f"the owner ended with exit code {self._popen.wait(10)}"
        return dict(json.loads(line))

    def _close(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves nothing, whatever the test found."""
        if self._popen.poll() is None:
            self.kill()
        for process in self.processes:
            if not is_gone(process):
                process.kill()


@contextlib.contextmanager
def ordinary_user(account: Account) -> Iterator[OrdinaryUser]:
    """Raises LookupError with the reasons when the account can run no Python that we know."""
    home = Path(tempfile.mkdtemp(prefix="ordinary-user-"))
    try:
        library = home / "library"
        for package in (ROOT / "private_services", Path(psutil.__file__).parent):
            shutil.copytree(package, library / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PROGRAM, library)
        for folder, _, files in os.walk(home):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, account.uid, account.gid)
        yield OrdinaryUser(account, home, _python_for(account, library))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _python_for(account: Account, library: Path) -> str:
    reasons = []
    for python in dict.fromkeys((sys.executable, shutil.which("python3", path=os.defpath))):
        if python is None:
            continue
        try:
            subprocess.run(
                [python, "-c", "import private_services"],
                user=account.uid,
                group=account.gid,
                extra_groups=[],
                cwd="/",
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(library)},
                check=True,
                capture_output=True,
                text=True,
            )
        except OSError as error:
            reasons.append(f"{python}: {error.strerror}")
        except subprocess.CalledProcessError as error:
            reasons.append(f"{python}: {error.stderr.strip().splitlines()[-1]}")
        else:
            return python
    raise LookupError(f"user {account.name} can run no Python here ({'; '.join(reasons)})")


def tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def postgres_pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


def is_gone(process: psutil.Process) -> bool:
    """Also when nobody has asked for its exit code yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(processes: Iterable[psutil.Process]) -> None:
    known = list(processes)
    assert known, "nothing to wait for"
    eventually(lambda: all(map(is_gone, known)), what=f"all of {known} are gone")


def each_living(processes: Iterable[psutil.Process], look: Callable[[psutil.Process], Any]) -> list[Any]:
    """What the look shows; a server's helpers come and go."""
    seen = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            seen.append(look(process))
    return seen


def listening_addresses(processes: Iterable[psutil.Process]) -> set[str]:
    sockets = each_living(processes, lambda process: process.net_connections("inet"))
    return {one.laddr.ip for some in sockets for one in some if one.status == psutil.CONN_LISTEN}


def query(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []
