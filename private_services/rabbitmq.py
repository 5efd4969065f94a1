"""A RabbitMQ node of our own: one folder, ports of the loopback only, gone when its owner is gone."""

import os
import secrets
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import IO

from private_services.children import Child
from private_services.errors import ServiceError
from private_services.ports import LOOPBACK, accepts, free_port
from private_services.rabbitmq_installation import epmd_program, rabbitmq_scripts, why_not_usable
from private_services.service import PrivateService

USER = "private"

#: Seconds after which a silent connection is given up; the client may ask for less.
HEARTBEAT = 30

#: Seconds.
EPMD_DEADLINE = 10.0
CTL_DEADLINE = 60.0

#: Nothing listens outside the loopback, and no epmd is started but the one we start: it would outlive us.
ERLANG_ARGUMENTS = "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false"


class PrivateRabbitMQ(PrivateService):
    """Durable queues and persistent messages survive stop(), kill() and a killed owner."""

    name = "RabbitMQ"
    stop_signal = signal.SIGTERM

    def __init__(self, folder: Path, port: int | None = None) -> None:
        super().__init__(folder, port)
        # The node's data belong to its name, so the name is as old as the folder.
        self._node: str = self._state.get("node") or f"private-{secrets.token_hex(6)}@localhost"
        self._distribution_port = 0
        self._epmd_port = 0
        self._epmd: Child | None = None

    @staticmethod
    def available() -> str | None:
        """None: usable; else one line that says why not and what to run."""
        return why_not_usable()

    @property
    def url(self) -> str:
        return f"amqp://{USER}:{self._password}@{LOOPBACK}:{self.port}/%2F"

    def ctl(self, *arguments: str) -> str:
        """What rabbitmqctl prints, run against this node."""
        self._running_child()
        port = free_port()
        environment = {
            **self._environment(),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(port),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(port + 10),
        }
        with tempfile.TemporaryFile() as output:
            process = Child([_programs()[0] / "rabbitmqctl", *arguments], env=environment, output=output)
            if not process.wait(CTL_DEADLINE):
                process.kill()
            output.seek(0)
            text = output.read().decode(errors="replace")
        if process.exit_code != 0:
            raise ServiceError(f"rabbitmqctl {' '.join(arguments)} failed: {text.strip()}")
        return text

    def _recall(self) -> None:
        super()._recall()
        self._node = self._state.get("node") or self._node

    def _find_ports(self) -> None:
        super()._find_ports()
        self._distribution_port, self._epmd_port = free_port(), free_port()

    def _launch(self, log: IO[bytes], lock: int) -> Child:
        scripts, epmd = _programs()
        self._remember(node=self._node)
        self._write_configuration()
        self._start_epmd(epmd, log)
        # SIGKILL at our death: a node may take its time for SIGTERM, and what it confirmed is on the disk.
        return Child(
            [scripts / "rabbitmq-server"],
            death_signal=signal.SIGKILL,
            env=self._environment(),
            output=log,
            pass_fds=(lock,),
        )

    def _ready(self, child: Child) -> bool:
        """It answers the greeting of AMQP."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def _end_all(self) -> None:
        own = self._owner == os.getpid()
        super()._end_all()
        if self._epmd is not None and own:
            self._epmd.kill()
        self._epmd = None

    def _start_epmd(self, program: Path, log: IO[bytes]) -> None:
        """Erlang's name server, in the foreground: as our child it dies with us, which a daemon would not."""
        words: list[str | Path] = [program, "-address", LOOPBACK, "-port", str(self._epmd_port)]
        self._epmd = Child(words, env=self._environment(), output=log)
        deadline = time.monotonic() + EPMD_DEADLINE
        while not accepts(self._epmd_port):
            if not self._epmd.running or time.monotonic() > deadline:
                raise ServiceError(f"Erlang's epmd does not start; {self._log_tail()}")
            time.sleep(0.01)

    def _write_configuration(self) -> None:
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = {LOOPBACK}:{self.port}\n"
            f"default_user = {USER}\n"
            f"default_pass = {self._password}\n"
            f"heartbeat = {HEARTBEAT}\n"
            "log.console = true\n"
            "log.console.level = info\n"
            "log.file = false\n"
        )
        (self.folder / "rabbitmq.conf").chmod(0o600)
        (self.folder / "enabled_plugins").write_text("[].\n")

    def _environment(self) -> dict[str, str]:
        """Without what belongs to another node, or to the systemd unit that we may run in."""
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("RABBITMQ_", "ERL_")) and key != "NOTIFY_SOCKET"
        }
        return {
            **inherited,
            "HOME": str(self.folder),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_CRASH_DUMP_SECONDS": "0",
            # The script becomes the Erlang machine; else it stays its parent, and kill -9 hits only a shell.
            "RUNNING_UNDER_SYSTEMD": "1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            # Of every Erlang machine, the one too that node and rabbitmqctl start to make sure of an epmd.
            "ERL_AFLAGS": ERLANG_ARGUMENTS,
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CONFIG_FILES": str(self.folder / "conf.d"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(self.folder / "rabbitmq.pid"),
        }


def _programs() -> tuple[Path, Path]:
    """The folder of RabbitMQ's scripts, and epmd."""
    scripts, epmd = rabbitmq_scripts(), epmd_program()
    if scripts is None or epmd is None:
        raise ServiceError(why_not_usable() or "RabbitMQ is not usable")
    return scripts, epmd
