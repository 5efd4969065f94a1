"""One ordinary user per run, for those who are root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from private_services.accounts import unprivileged_account
from tests.private_services.owners import OrdinaryUser, ordinary_user


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
