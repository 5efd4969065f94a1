"""What every private service can do: a server process of our own, in a folder of our own, on the loopback.

The folder is all there is of a service: delete it and nothing is left. It holds the data, the log, and a json
file (mode 0600) with the password and the port, so that a later start gives the same address.
"""

import contextlib
import fcntl
import json
import os
import secrets
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, ClassVar, Self

from private_services.children import Child
from private_services.errors import ServiceError
from private_services.ports import free_port, is_free

#: Bytes; a longer log is set aside at the next start, and the one set aside before it is deleted.
LOG_LIMIT = 20_000_000


class PrivateService(ABC):
    """One thread at a time may call the verbs; a forked copy of the process may read the address, no more."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    #: Seconds.
    start_deadline: ClassVar[float] = 60.0
    stop_deadline: ClassVar[float] = 30.0
    #: Seconds for another server on the same folder, whose owner was killed, to end.
    predecessor_deadline: ClassVar[float] = 15.0

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._state: dict[str, Any] = self._remembered()
        self._port_may_change = port is None
        self._port: int = port or self._state.get("port") or free_port()
        self._password: str = self._state.get("password") or secrets.token_hex(16)
        self._child: Child | None = None
        self._owner = 0
        self._log_start = 0

    @property
    def port(self) -> int:
        """Known before the start. A port that nobody asked for is changed by start() when another program has
        it, or when the service was started in this folder, with another port, since this object was made."""
        return self._port

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def log_file(self) -> Path:
        return self.folder / f"{self.name.lower()}.log"

    @property
    def running(self) -> bool:
        """True for a frozen service too."""
        return self._own_child() is not None

    @property
    def pid(self) -> int:
        """Of the server process; its helpers are below it."""
        return self._running_child().pid

    def start(self) -> None:
        """Returns when the service accepts connections. Nothing happens when it runs already."""
        if self.running:
            return
        # What a server that died by itself left behind, such as RabbitMQ's epmd.
        self._end_all()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._folder_lock() as lock:
            self._recall()
            for attempts_left in (2, 1, 0):
                self._find_ports()
                try:
                    self._start(lock)
                    return
                except ServiceError:
                    self._end_all()
                    if not attempts_left or not self._port_may_change or is_free(self._port):
                        raise
                except BaseException:
                    self._end_all()
                    raise

    def stop(self) -> None:
        """In good order; kill() when that takes longer than the deadline."""
        child = self._own_child()
        if child is not None:
            child.thaw()
            child.signal(self.stop_signal)
            child.wait(self.stop_deadline)
        self._end_all()

    def kill(self) -> None:
        """kill -9 of all processes of the service: the next start is a recovery after a crash."""
        self._end_all()

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """The service stops answering, and its connections stay open."""
        self._running_child().freeze()

    def thaw(self) -> None:
        self._running_child().thaw()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _launch(self, log: IO[bytes], lock: int) -> Child:
        """Makes what is missing in the folder, starts the server, and lets it inherit the lock."""

    @abstractmethod
    def _ready(self, child: Child) -> bool: ...

    def _recall(self) -> None:
        """What was remembered since this object was made is true of the data: the password above all."""
        self._state = self._remembered()
        self._password = self._state.get("password") or self._password
        if self._port_may_change:
            self._port = self._state.get("port") or self._port

    def _find_ports(self) -> None:
        if self._port_may_change and not is_free(self._port):
            self._port = free_port()

    def _start(self, lock: int) -> None:
        if not is_free(self._port):
            raise ServiceError(f"{self.name} cannot start: port {self._port} is used by another program")
        self._remember(port=self._port, password=self._password)
        self._set_long_log_aside()
        with open(self.log_file, "ab", opener=_private) as log:
            self._log_start = log.tell()
            self._owner = os.getpid()
            child = self._child = self._launch(log, lock)
        deadline = time.monotonic() + self.start_deadline
        while not self._ready(child):
            if not child.running:
                raise ServiceError(f"{self.name} ended at once (exit code {child.exit_code}); {self._log_tail()}")
            if time.monotonic() > deadline:
                raise ServiceError(f"{self.name} is not ready after {self.start_deadline:g} s; {self._log_tail()}")
            time.sleep(0.01)
        # Clients hold this address from now on.
        self._port_may_change = False

    def _end_all(self) -> None:
        # Also of a server that is dead already: what it left behind.
        if self._child is not None and self._owner == os.getpid():
            self._child.kill()
        self._child = None

    def _own_child(self) -> Child | None:
        """A forked copy of this process owns nothing: it must not end the server of the original."""
        if self._child is None or self._owner != os.getpid() or not self._child.running:
            return None
        return self._child

    def _running_child(self) -> Child:
        child = self._own_child()
        if child is None:
            raise ServiceError(f"{self.name} in {self.folder} does not run")
        return child

    @contextlib.contextmanager
    def _folder_lock(self) -> Iterator[int]:
        """Inherited and held by the server: free only when the last process of a server is gone."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + self.predecessor_deadline
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ServiceError(f"another {self.name} runs in {self.folder}: stop it first") from None
                    time.sleep(0.02)
            yield lock
        finally:
            os.close(lock)

    @property
    def _state_file(self) -> Path:
        return self.folder / f"{self.name.lower()}.json"

    def _remembered(self) -> dict[str, Any]:
        try:
            state = json.loads(self._state_file.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ServiceError(f"{self._state_file} cannot be read: {error}") from error
        if not isinstance(state, dict):
            raise ServiceError(f"{self._state_file} cannot be read: it is not a json object")
        return state

    def _remember(self, **facts: Any) -> None:
        self._state.update(facts)
        fresh = self._state_file.with_suffix(".new")
        with open(fresh, "w", opener=_private) as file:
            json.dump(self._state, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._state_file)

    def _set_long_log_aside(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.log_file.stat().st_size > LOG_LIMIT:
                self.log_file.replace(self.log_file.with_suffix(".log.old"))

    def _log_tail(self) -> str:
        text = self.log_file.read_bytes()[self._log_start :].decode(errors="replace")
        return f"the end of {self.log_file}:\n" + "\n".join(text.splitlines()[-15:])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
