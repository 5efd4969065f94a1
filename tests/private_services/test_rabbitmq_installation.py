"""RabbitMQ is found or installed where that is possible, and where it is not, nobody can overlook it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from private_services import PrivateRabbitMQ, install_rabbitmq, rabbitmq_installation
from private_services.rabbitmq_installation import epmd_program, rabbitmq_scripts
from tests.processes import ROOT


class Machine:
    """A path and a package folder of its own; its apt-get does what a test writes into it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.package, self.policy = folder / "path", folder / "package", folder / "policy-rc.d"
        self.calls = folder / "calls"
        self.path.mkdir()
        self.package.mkdir()
        monkeypatch.setenv("PATH", str(self.path))
        monkeypatch.setattr(rabbitmq_installation, "SCRIPT_FOLDERS", (self.package,))
        monkeypatch.setattr(rabbitmq_installation, "POLICY", self.policy)

    def has(self, *programs: str) -> None:
        for program in programs:
            self.write(program, "")

    def write(self, program: str, script: str) -> None:
        (self.path / program).write_text(f"#!/bin/sh\n{script}\n")
        (self.path / program).chmod(0o755)

    def write_apt_get(self, script: str) -> None:
        """It says what it was called with and what Debian's policy for services was then."""
        self.write("apt-get", f'{self.policy}; echo "$?: $*" >> {self.calls}\n{script}')

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)


@pytest.mark.usefixtures("root")
def test_root_is_told_the_command(machine: Machine) -> None:
    machine.has("apt-get")
    assert PrivateRabbitMQ.available() == "RabbitMQ is not installed: apt-get install rabbitmq-server"


@pytest.mark.usefixtures("not_root")
def test_an_ordinary_user_is_told_the_command(machine: Machine) -> None:
    machine.has("apt-get")
    assert PrivateRabbitMQ.available() == "RabbitMQ is not installed: sudo apt-get install rabbitmq-server"


def test_a_system_without_apt_is_told_the_package(machine: Machine) -> None:
    assert PrivateRabbitMQ.available() == (
        "RabbitMQ is not installed: install the package rabbitmq-server of this system"
    )


@pytest.mark.parametrize("there", [[], ["epmd"]])
def test_rabbitmq_without_erlang_is_not_usable(machine: Machine, there: list[str]) -> None:
    (machine.package / "rabbitmq-env").touch()
    machine.has(*there)
    assert (PrivateRabbitMQ.available() or "").startswith("RabbitMQ is installed, but Erlang (erl, epmd) is not: ")


def test_rabbitmq_with_erlang_is_usable(machine: Machine) -> None:
    (machine.package / "rabbitmq-env").touch()
    machine.has("erl", "epmd")
    assert PrivateRabbitMQ.available() is None


def test_a_wrapper_on_the_path_is_not_taken_for_the_script(machine: Machine) -> None:
    machine.has("rabbitmq-server")
    assert rabbitmq_scripts() is None
    (machine.package / "rabbitmq-env").touch()
    assert rabbitmq_scripts() == machine.package


def test_scripts_on_the_path_are_found(machine: Machine) -> None:
    machine.has("rabbitmq-server", "rabbitmq-env")
    assert rabbitmq_scripts() == machine.path


def test_an_epmd_that_only_erlang_knows_is_found(machine: Machine, tmp_path: Path) -> None:
    erlang = tmp_path / "erlang"
    for program in ("bin/erl", "erts-13.1.5/bin/epmd"):
        (erlang / program).parent.mkdir(parents=True)
        (erlang / program).touch(mode=0o755)
    (machine.path / "erl").symlink_to(erlang / "bin" / "erl")
    assert epmd_program() == erlang / "erts-13.1.5" / "bin" / "epmd"
    machine.has("epmd")
    assert epmd_program() == machine.path / "epmd"


INSTALL = "install --yes --no-install-recommends rabbitmq-server"


@pytest.mark.usefixtures("root")
def test_it_is_installed_without_a_service(machine: Machine) -> None:
    """101 is the answer of a policy that forbids services."""
    machine.has("erl", "epmd")
    machine.write_apt_get(f": > {machine.package}/rabbitmq-env")
    assert install_rabbitmq()
    assert machine.called == [f"101: {INSTALL}"]
    assert not machine.policy.exists()
    assert install_rabbitmq()
    assert len(machine.called) == 1


@pytest.mark.usefixtures("root")
def test_old_package_lists_are_renewed(machine: Machine) -> None:
    machine.has("erl", "epmd")
    machine.write_apt_get(
        f"case $1 in update) : > {machine.path}/renewed ;; *) [ -e {machine.path}/renewed ] || exit 100\n"
        f": > {machine.package}/rabbitmq-env ;; esac"
    )
    assert install_rabbitmq()
    assert machine.called == [f"101: {INSTALL}", "101: update", f"101: {INSTALL}"]


@pytest.mark.usefixtures("root")
def test_an_installation_that_fails_is_not_called_usable(machine: Machine) -> None:
    machine.write_apt_get("exit 100")
    assert not install_rabbitmq()
    assert machine.called == [f"101: {INSTALL}", "101: update"]
    assert not machine.policy.exists()


@pytest.mark.usefixtures("root")
def test_a_policy_of_the_administrator_stays(machine: Machine) -> None:
    machine.policy.write_text("#!/bin/sh\nexit 7\n")
    machine.policy.chmod(0o755)
    machine.write_apt_get("exit 100")
    install_rabbitmq()
    assert machine.called[0] == f"7: {INSTALL}"
    assert machine.policy.read_text() == "#!/bin/sh\nexit 7\n"


@pytest.mark.usefixtures("not_root")
def test_an_ordinary_user_installs_nothing(machine: Machine) -> None:
    machine.write_apt_get("exit 0")
    assert not install_rabbitmq()
    assert machine.called == []


def run_two_tests_without_rabbitmq(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """On a path on which there is nothing, so that neither Erlang nor apt-get is found."""
    module = "tests/private_services/test_rabbitmq.py"
    tests = ["test_nothing_listens_outside_the_loopback", "test_ctl_speaks_to_this_node"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"{module}::{test}" for test in tests)],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CI": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_rabbitmq_its_tests_are_skipped_with_one_loud_line_at_the_end(tmp_path: Path) -> None:
    finished = run_two_tests_without_rabbitmq(tmp_path)
    assert finished.returncode == 0, finished.stdout
    *_, loud, totals = finished.stdout.splitlines()
    assert loud.startswith("NOT TESTED: everything that needs RabbitMQ. RabbitMQ is ")
    assert finished.stdout.count("NOT TESTED") == 1
    assert "2 skipped in" in totals


def test_in_ci_a_missing_rabbitmq_is_an_error(tmp_path: Path) -> None:
    finished = run_two_tests_without_rabbitmq(tmp_path, CI="true")
    assert finished.returncode == 1, finished.stdout
    assert "2 errors in" in finished.stdout.splitlines()[-1]
