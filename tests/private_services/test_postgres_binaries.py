"""Which PostgreSQL programs are chosen, and that all kinds of them serve."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from private_services import PrivatePostgres, ServiceError, postgres_binaries
from private_services.accounts import Account, may_enter, unprivileged_account
from private_services.postgres_binaries import (
    PostgresBinaries,
    _system_folders,
    _wheel_folders,
    binaries_in,
    find_binaries,
    runnable_by,
)
from tests.private_services.owners import query


def make_programs(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (folder / program).write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")
        (folder / program).chmod(0o755)
    return folder


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of a version that nobody has, first on the path."""
    folder = make_programs(tmp_path / "path" / "bin", "97.1")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


def real(kind: str) -> PostgresBinaries:
    folders = {"system": _system_folders, "wheel": _wheel_folders}[kind]()
    for binaries in map(binaries_in, folders):
        if binaries is not None:
            return binaries
    pytest.skip(f"there is no PostgreSQL of the {kind} here")


@pytest.mark.parametrize("kind", ["system", "wheel"])
def test_lower_and_ilike_know_cyrillic(kind: str, tmp_path: Path) -> None:
    binaries = real(kind)
    with PrivatePostgres(tmp_path, binaries=binaries.folder) as server:
        assert query(server.url, "select lower('ПРИВЕТ, Ёж'), 'Ёлка' ilike 'ёЛК%'") == [("привет, ёж", True)]
        assert query(server.url, "show server_encoding") == [("UTF8",)]


def test_a_data_folder_is_served_by_the_version_that_made_it(tmp_path: Path) -> None:
    system, wheel = real("system"), real("wheel")
    if system.major == wheel.major:
        pytest.skip(f"the system and the wheel both have PostgreSQL {wheel.major}")
    for maker, other in ((system, wheel), (wheel, system)):
        folder = tmp_path / str(maker.major)
        with PrivatePostgres(folder, binaries=maker.folder):
            pass
        with PrivatePostgres(folder) as server:
            [(version,)] = query(server.url, "show server_version_num")
            assert int(version) // 10_000 == maker.major
        wrong = PrivatePostgres(folder, binaries=other.folder)
        with pytest.raises(ServiceError) as refusal:
            wrong.start()
        assert str(refusal.value).startswith(
            f"PostgreSQL {maker.major}, which made this data folder, is not in {other.folder} "
            f"(found: {other.major} in {other.folder}): install it"
        )


def test_what_is_on_the_path_is_chosen_first(on_path: Path) -> None:
    assert find_binaries() == PostgresBinaries(on_path, 97)


def test_a_wanted_version_is_looked_for_everywhere(on_path: Path) -> None:
    wheel = real("wheel")
    assert find_binaries(major=wheel.major).major == wheel.major


def test_a_version_that_is_nowhere_is_said_with_those_that_are(on_path: Path) -> None:
    with pytest.raises(ServiceError, match=rf"PostgreSQL 96, .* is not on this machine \(found: 97 in {on_path}"):
        find_binaries(major=96)


def test_a_version_too_old_is_refused(tmp_path: Path) -> None:
    folder = make_programs(tmp_path / "bin", "13.4")
    with pytest.raises(ServiceError, match=rf"14 or newer is not in {folder} \(found: 13 in {folder}\)"):
        find_binaries(folder)


def test_an_explicit_folder_without_programs_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=rf"14 or newer is not in {tmp_path} \(found: none\)"):
        find_binaries(tmp_path)


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "not a program\n"])
def test_programs_that_do_not_run_are_passed_over(tmp_path: Path, script: str) -> None:
    folder = make_programs(tmp_path / "bin", "17.0")
    assert binaries_in(folder) == PostgresBinaries(folder, 17)
    (folder / "postgres").write_text(script)
    assert binaries_in(folder) is None


def test_an_explicit_folder_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server starts in another working folder than ours."""
    binaries = find_binaries()
    monkeypatch.chdir(binaries.folder.parent)
    with PrivatePostgres(tmp_path, binaries=Path(binaries.folder.name)) as server:
        assert query(server.url, "select 1") == [(1,)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
class TestWhenRootBecomesSomebodyElse:
    @pytest.fixture
    def account(self) -> Account:
        account = unprivileged_account()
        assert account is not None
        return account

    def test_programs_that_the_account_can_run_stay_where_they_are(self, account: Account, open_folder: Path) -> None:
        binaries = PostgresBinaries(make_programs(open_folder / "bin", "17.0"), 17)
        assert runnable_by(account, binaries) == binaries

    def test_programs_in_a_closed_folder_are_said(self, account: Account, open_folder: Path) -> None:
        binaries = PostgresBinaries(make_programs(open_folder / "closed" / "bin", "17.0"), 17)
        (open_folder / "closed").chmod(0o700)
        with pytest.raises(ServiceError, match=r"user nobody cannot enter .*: open its parent folders"):
            runnable_by(account, binaries)

    def test_a_wheel_in_a_closed_folder_is_copied_once(
        self, account: Account, open_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also when root's files are closed to others by default."""
        folder = real("wheel").folder
        site_packages = folder.parents[2]
        closed = open_folder / "closed"
        closed.mkdir(mode=0o700)
        for name in (postgres_binaries.WHEEL, f"{postgres_binaries.WHEEL}.libs"):
            if (site_packages / name).exists():
                (closed / name).symlink_to(site_packages / name)
        unreachable = closed / folder.relative_to(site_packages)
        assert not may_enter(account, unreachable)
        copies = open_folder / "copies"
        monkeypatch.setattr(postgres_binaries, "COPIES", copies)
        umask = os.umask(0o077)
        try:
            with PrivatePostgres(open_folder / "data", binaries=unreachable) as server:
                assert query(server.url, "select 1") == [(1,)]
        finally:
            os.umask(umask)
        [copy] = copies.iterdir()
        number = copy.stat().st_ino
        found = binaries_in(unreachable)
        assert found is not None
        assert runnable_by(account, found).folder == copy / folder.relative_to(site_packages)
        assert [one.stat().st_ino for one in copies.iterdir()] == [number]

    def test_a_copy_can_be_read_by_others_though_the_wheel_cannot(
        self, account: Account, open_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """pip gives files the rights that the umask leaves, and the umask of root may leave none."""
        package = open_folder / "closed" / postgres_binaries.WHEEL
        binaries = PostgresBinaries(make_programs(package / "pginstall" / "bin", "17.0"), 17)
        (binaries.folder / "postgres").chmod(0o700)
        (binaries.folder / "initdb").chmod(0o600)
        (open_folder / "closed").chmod(0o700)
        monkeypatch.setattr(postgres_binaries, "COPIES", open_folder / "copies")
        copy = runnable_by(account, binaries)
        assert stat.S_IMODE(copy.postgres.stat().st_mode) == 0o755
        assert stat.S_IMODE(copy.initdb.stat().st_mode) == 0o644
