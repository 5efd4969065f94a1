"""For those who are root: one ordinary user per run, and folders that others can enter."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from private_services.accounts import unprivileged_account
from tests.private_services.owners import OrdinaryUser, ordinary_user


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Unlike tmp_path, one that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def ordinary() -> Iterator[OrdinaryUser]:
    account = unprivileged_account()
    if account is None:
        pytest.skip("we are an ordinary user already, and so all other tests test this")
    try:
        with ordinary_user(account) as user:
            yield user
    except LookupError as error:
        pytest.skip(str(error))
