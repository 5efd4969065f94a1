"""Where RabbitMQ's programs are on this machine, and how they get there."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: Of the plain scripts. Debian's /usr/sbin/rabbitmq-server is a wrapper that changes the user.
SCRIPT_FOLDERS = (
    Path("/usr/lib/rabbitmq/bin"),
    Path("/opt/homebrew/opt/rabbitmq/sbin"),
    Path("/usr/local/opt/rabbitmq/sbin"),
)

#: Debian asks this program before a package starts its service.
POLICY = Path("/usr/sbin/policy-rc.d")

#: Seconds for one run of apt-get.
APT_DEADLINE = 900.0


def rabbitmq_scripts() -> Path | None:
    """The folder of the plain scripts, which have rabbitmq-env beside them."""
    on_path = shutil.which("rabbitmq-server")
    folders = (*SCRIPT_FOLDERS, Path(on_path).resolve().parent) if on_path else SCRIPT_FOLDERS
    return next((folder for folder in folders if (folder / "rabbitmq-env").is_file()), None)


def epmd_program() -> Path | None:
    """Erlang's name server; on some systems only the Erlang machine itself has it on its path."""
    if on_path := shutil.which("epmd"):
        return Path(on_path)
    erl = shutil.which("erl")
    root = Path(erl).resolve().parent.parent if erl else Path("/usr/lib/erlang")
    return next(iter(sorted(root.glob("erts-*/bin/epmd"), reverse=True)), None)


def why_not_usable() -> str | None:
    """None: RabbitMQ is usable; else one line that says why not and what to run."""
    if rabbitmq_scripts() is None:
        return f"RabbitMQ is not installed: {_install_command()}"
    if shutil.which("erl") is None or epmd_program() is None:
        return f"RabbitMQ is installed, but Erlang (erl, epmd) is not: {_install_command()}"
    return None


def install_rabbitmq() -> bool:
    """Installs Debian's package when we are root, starts no service; whether RabbitMQ is usable then."""
    if why_not_usable() is None:
        return True
    apt_get = shutil.which("apt-get")
    if os.geteuid() != 0 or apt_get is None:
        return False
    install = [apt_get, "install", "--yes", "--no-install-recommends", "rabbitmq-server"]
    with _services_stay_off():
        # Package lists may be missing (a container) or name packages that are no longer there.
        if not _succeeds(install) and _succeeds([apt_get, "update"]):
            _succeeds(install)
    return why_not_usable() is None


def _install_command() -> str:
    if sys.platform == "darwin":
        return "brew install rabbitmq"
    if shutil.which("apt-get"):
        return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install rabbitmq-server"
    return "install the package rabbitmq-server of this system"


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        finished = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=APT_DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return finished.returncode == 0


@contextlib.contextmanager
def _services_stay_off() -> Iterator[None]:
    if POLICY.exists():
        # The administrator has a policy, and it is not ours to change.
        yield
        return
    # 101: "do not". Only while we live: killed in the middle, we leave a policy that forbids nothing.
    POLICY.write_text(f"#!/bin/sh\nkill -0 {os.getpid()} 2>/dev/null && exit 101\nexit 0\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
