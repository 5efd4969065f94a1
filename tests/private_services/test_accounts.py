"""Who a server runs as, and which folders that user can enter."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from private_services import ServiceError
from private_services.accounts import Account, may_enter, unprivileged_account


def test_an_ordinary_user_stays_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert unprivileged_account() is None


def test_root_becomes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    account = unprivileged_account()
    assert account is not None
    assert account.name == "nobody"
    assert account.uid == pwd.getpwnam("nobody").pw_uid != 0


def test_a_system_without_nobody_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", missing)
    with pytest.raises(ServiceError, match="does not run as root, and there is no user nobody to run it as"):
        unprivileged_account()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else and become them")
@pytest.mark.parametrize("mode", [0o700, 0o070, 0o007, 0o711, 0o750, 0o000], ids=oct)
@pytest.mark.parametrize("owner", ["theirs", "their group's", "another's"])
def test_it_says_of_a_folder_what_the_kernel_says(open_folder: Path, mode: int, owner: str) -> None:
    account = Account("somebody", 54321, 54322)
    upper = open_folder / "upper"
    (upper / "lower").mkdir(parents=True)
    (upper / "lower").chmod(0o755)
    os.chown(upper, account.uid if owner == "theirs" else 0, account.gid if owner == "their group's" else 0)
    upper.chmod(mode)
    entered = subprocess.run(
        ["/bin/sh", "-c", 'cd "$0"', upper / "lower"],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert may_enter(account, upper / "lower") == (entered.returncode == 0)
