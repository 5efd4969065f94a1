"""Child processes and their trees; the trampoline that starts them, and the watcher that ends them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from private_services import children
from private_services.accounts import unprivileged_account
from private_services.children import Child
from private_services.process_trees import ProcessTree, works_in
from tests.private_services.owners import is_gone, tree, wait_until_gone
from tests.processes import ROOT, eventually

ENVIRONMENT = {"PATH": os.defpath}

#: A process with two children, one of which leads a session of its own.
FAMILY = ["/bin/sh", "-c", "sleep 600 & setsid sleep 600 & wait"]


@contextmanager
def running(command: list[str]) -> Iterator[Child]:
    child = Child(command, env=ENVIRONMENT)
    try:
        yield child
    finally:
        child.kill()


def family_of(pid: int) -> list[psutil.Process]:
    """When it is complete."""
    return eventually(lambda: _with_two_sleepers(tree(pid)), what="three processes")


def _with_two_sleepers(processes: list[psutil.Process]) -> list[psutil.Process] | None:
    return processes if [one.name() for one in processes[1:]] == ["sleep", "sleep"] else None


def output_of(command: list[str], **options: object) -> str:
    with tempfile.TemporaryFile() as output:
        child = Child(command, output=output, **{"env": ENVIRONMENT, **options})  # type: ignore[arg-type]
        assert child.wait(30)
        output.seek(0)
        return output.read().decode()


def test_a_child_starts_in_a_clean_state() -> None:
    """Whatever its parent blocks or has as its working folder."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        program = (
            "import os, signal, sys; print(os.getcwd(), oct(os.umask(0)), os.getsid(0) == os.getpid(),"
            "signal.pthread_sigmask(signal.SIG_BLOCK, ()), sys.stdin.read(), dict(os.environ))"
        )
        said = output_of([sys.executable, "-I", "-c", program], env={"LC_ALL": "C"})
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert said.split("\n")[0] == "/ 0o77 True set()  {'LC_ALL': 'C'}"


def test_a_child_has_the_folder_and_the_umask_that_it_is_given(tmp_path: Path) -> None:
    assert output_of(["/bin/sh", "-c", "pwd; umask"], cwd=tmp_path, umask=0o027).split() == [str(tmp_path), "0027"]


def test_a_child_inherits_the_descriptors_it_is_given_and_no_other(tmp_path: Path) -> None:
    given, kept = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        said = output_of(["/bin/sh", "-c", f"ls /dev/fd/{given} /dev/fd/{kept}"], pass_fds=[given])
    finally:
        os.close(given)
        os.close(kept)
    assert f"/dev/fd/{kept}': No such file" in said
    assert f"/dev/fd/{given}': No such file" not in said


def test_the_end_of_a_child_is_seen() -> None:
    with running(["/bin/sh", "-c", "exit 7"]) as child:
        assert child.wait(30)
        assert not child.running
        assert child.exit_code == 7


def test_waiting_for_a_child_that_goes_on_says_so() -> None:
    with running(["/bin/sleep", "600"]) as child:
        assert not child.wait(0)
        assert child.running
        assert child.exit_code is None


def test_a_command_that_is_not_there_ends_the_child_with_its_reason() -> None:
    assert "No such file or directory" in output_of(["/no/such/program"])


def test_a_failed_fork_is_told_to_the_caller_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(FileNotFoundError, match="/no/such/python"):
            Child(["/bin/sleep", "600"], env=ENVIRONMENT)
    assert output_of(["/bin/echo", "well"]) == "well\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_child_with_an_account_has_nothing_of_root() -> None:
    """Above all not the groups that root may be in, as the owner of this child is."""
    account = unprivileged_account()
    assert account is not None
    program = """
from private_services.accounts import unprivileged_account
from private_services.children import Child
child = Child(["/usr/bin/id"], account=unprivileged_account(), env={"LC_ALL": "C"}, output=1)
assert child.wait(30)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], extra_groups=[0, 4], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"(\w+)=(\d+)", said) == [
        ("uid", str(account.uid)),
        ("gid", str(account.gid)),
        ("groups", str(account.gid)),
    ]
    assert "," not in said


def test_kill_ends_the_whole_tree() -> None:
    with running(FAMILY) as child:
        family = family_of(child.pid)
        child.kill()
        assert all(map(is_gone, family))
        assert child.exit_code == -signal.SIGKILL


def test_freeze_stops_the_whole_tree_and_thaw_continues_it() -> None:
    with running(FAMILY) as child:
        family = family_of(child.pid)
        child.freeze()
        assert [one.status() for one in family] == [psutil.STATUS_STOPPED] * 3
        child.thaw()
        eventually(lambda: psutil.STATUS_STOPPED not in [one.status() for one in family], what="all of them go on")


def test_a_thawed_child_needs_no_watcher() -> None:
    with running(["/bin/sleep", "600"]) as child:
        before = set(psutil.Process().children())
        child.freeze()
        assert len(set(psutil.Process().children()) - before) == 1
        child.thaw()
        assert set(psutil.Process().children()) == before


def test_a_tree_whose_root_has_ended_touches_nothing() -> None:
    ended = subprocess.Popen(["/bin/true"])
    known = ProcessTree(ended.pid)
    ended.wait(10)
    for old in (known, ProcessTree(ended.pid)):
        assert not old.alive
        old.freeze()
        old.thaw()
        old.kill()


def test_a_process_works_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    process = subprocess.Popen(["/bin/sleep", "600"], cwd=tmp_path)
    try:
        assert works_in(process.pid, tmp_path)
        assert works_in(process.pid, tmp_path / "link")
        assert not works_in(process.pid, tmp_path / "other")
    finally:
        process.kill()
        process.wait(10)
    assert not works_in(process.pid, tmp_path)


def test_the_trampoline_refuses_when_its_parent_is_gone_already() -> None:
    """The kernel's signal comes for a death after the wish alone."""
    words = [
        sys.executable,
        children._TRAMPOLINE,
        "1",
        str(int(signal.SIGKILL)),
        "-1",
        "-1",
        "63",
        "/bin/echo",
        "ran",
    ]
    finished = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (finished.stdout, finished.returncode) == ("", 1)
    assert finished.stderr == "the parent ended before its child began\n"


#: The owner's side of a system without PR_SET_PDEATHSIG: SIGCONT ends nobody.
OWNER_WITHOUT_THE_KERNEL = f"""
import signal, sys
from private_services import children
children.KERNEL_ENDS_CHILDREN = False
child = children.Child({FAMILY}, death_signal=signal.SIGCONT, env={{"PATH": {os.defpath!r}}})
print(child.pid, flush=True)
sys.stdin.readline()
child.signal(signal.SIGKILL)
print(child.wait(30), flush=True)
sys.stdin.readline()
"""


@contextmanager
def owner_without_the_kernel() -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    command = [sys.executable, "-c", OWNER_WITHOUT_THE_KERNEL]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout is not None
        family = family_of(int(owner.stdout.readline()))
        try:
            yield owner, family
        finally:
            owner.kill()
            for process in family:
                if not is_gone(process):
                    process.kill()


def test_the_watcher_ends_the_whole_tree_after_its_owner() -> None:
    with owner_without_the_kernel() as (owner, family):
        owner.kill()
        wait_until_gone(family)


def test_the_watcher_ends_with_the_server() -> None:
    with owner_without_the_kernel() as (owner, family):
        [watcher] = [one for one in psutil.Process(owner.pid).children() if one.pid != family[0].pid]
        assert owner.stdin is not None
        assert owner.stdout is not None
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == "True\n"
        assert not watcher.is_running()
