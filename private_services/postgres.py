"""A PostgreSQL server of our own: one folder, one port of the loopback, gone when its owner is gone."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from private_services.accounts import Account, may_enter, unprivileged_account
from private_services.children import Child
from private_services.errors import ServiceError
from private_services.ports import LOOPBACK
from private_services.postgres_binaries import PostgresBinaries, find_binaries, runnable_by
from private_services.process_trees import works_in
from private_services.service import PrivateService

USER = "postgres"

SETTINGS = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # No socket file: its path may not be longer than 107 bytes, and folders of tests are.
    "unix_socket_directories": "",
}

#: Seconds.
INITDB_DEADLINE = 120.0


class PrivatePostgres(PrivateService):
    """Data are as safe as in any PostgreSQL: they survive stop(), kill() and a killed owner."""

    name = "PostgreSQL"
    stop_signal = signal.SIGINT  # a fast shutdown: open transactions are rolled back

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        binaries: Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        """binaries: the folder of postgres and initdb; settings: as in postgresql.conf, over ours."""
        super().__init__(folder, port)
        self._explicit_binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self._password}@{LOOPBACK}:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _launch(self, log: IO[bytes], lock: int) -> Child:
        account = unprivileged_account()
        binaries = find_binaries(self._explicit_binaries, self._major_of_data())
        if account:
            binaries = runnable_by(account, binaries)
        if not self.data.exists():
            self._make_data(binaries, account, log, lock)
        self._remove_stale_pid_file()
        settings = {**self._settings, "listen_addresses": LOOPBACK, "port": str(self.port)}
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with _as_seen_by(account, self.data) as (data, fds):
            # SIGQUIT at our death: the server ends its sessions at once, even those in a long query. After
            # SIGKILL these would go on for a while, and the next start would be refused.
            return Child(
                [binaries.postgres, "-D", data, *words],
                death_signal=signal.SIGQUIT,
                account=account,
                env=_environment(),
                output=log,
                pass_fds=(lock, *fds),
            )

    def _ready(self, child: Child) -> bool:
        """As pg_ctl asks: the server writes its state in the eighth line of its pid file."""
        try:
            lines = self._pid_file.read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(child.pid) and lines[7].strip() == "ready"

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _major_of_data(self) -> int | None:
        """None: there are no data yet. initdb wrote the file, so it is true of a copied folder too."""
        try:
            return int((self.data / "PG_VERSION").read_text())
        except FileNotFoundError:
            return None

    def _make_data(self, binaries: PostgresBinaries, account: Account | None, log: IO[bytes], lock: int) -> None:
        """Under another name until it is complete: a crash leaves nothing that looks like data."""
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=self.folder) as password_file:
            password_file.write(self._password)
            password_file.flush()
            if account:
                os.chown(fresh, account.uid, account.gid)
                os.fchown(password_file.fileno(), account.uid, account.gid)
            with (
                _as_seen_by(account, fresh) as (data, data_fds),
                _as_seen_by(account, Path(password_file.name)) as (password, password_fds),
            ):
                identity: list[str | Path] = [
                    "--username",
                    USER,
                    "--auth",
                    "scram-sha-256",
                    "--pwfile",
                    password,
                ]
                initdb = Child(
                    [binaries.initdb, "-D", data, *identity, "--encoding", "UTF8", *_locale(binaries.major)],
                    account=account,
                    env=_environment(),
                    output=log,
                    pass_fds=(lock, *data_fds, *password_fds),
                )
                try:
                    initdb.wait(INITDB_DEADLINE)
                finally:
                    initdb.kill()
        if initdb.exit_code != 0:
            raise ServiceError(f"PostgreSQL's initdb failed; {self._log_tail()}")
        fresh.rename(self.data)

    def _remove_stale_pid_file(self) -> None:
        """After a crash another process may have its number, and PostgreSQL would refuse to start.

        A server works in its data folder, so we know it from one that has its number and another folder.
        """
        try:
            pid = int(self._pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return
        if works_in(pid, self.data):
            raise ServiceError(f"another PostgreSQL (process {pid}) runs in {self.data}: stop it first")
        self._pid_file.unlink(missing_ok=True)


@contextlib.contextmanager
def _as_seen_by(account: Account | None, path: Path) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """A path that the account can open, and the descriptors that the child has to inherit for that.

    When we are root, /root and many folders above ours are closed to the account. We open the path for it,
    and /proc/self/fd leads the child straight there: no folder has to be opened to other users.
    """
    if account is None:
        yield path, ()
    elif sys.platform == "linux":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            yield Path(f"/proc/self/fd/{descriptor}"), (descriptor,)
        finally:
            os.close(descriptor)
    else:
        path.parent.chmod(0o711)
        if not may_enter(account, path.parent):
            raise ServiceError(
                f"PostgreSQL does not run as root, and user {account.name} cannot enter {path.parent}: "
                f"use another folder, or do not work as root"
            )
        yield path, ()


def _locale(major: int) -> list[str]:
    """One in which lower() and ILIKE know more than ASCII; plain C does not."""
    if major >= 17:
        return ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]
    known = _system_locales()
    for name in ("C.UTF-8", "C.utf8", "en_US.UTF-8", "en_US.utf8", *sorted(known)):
        if name in known:
            return ["--locale", name]
    raise ServiceError("this system has no UTF-8 locale, and PostgreSQL before version 17 needs one")


def _system_locales() -> set[str]:
    program = shutil.which("locale")
    if program is None:
        # musl has none, and all its locales are UTF-8.
        return {"C.UTF-8"}
    try:
        listed = subprocess.run([program, "-a"], capture_output=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ServiceError(f"the locales of this system cannot be listed: {error}") from error
    return {name for name in listed.decode("latin-1").split() if name.lower().endswith((".utf8", ".utf-8"))}


def _environment() -> dict[str, str]:
    """Nothing of ours: variables such as PGDATA or PGOPTIONS belong to another server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
