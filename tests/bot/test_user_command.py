"""`chronos user`: the same verbs as the bot's, at the terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from chronos.cli.user import app
from chronos.errors import BadInput
from chronos.people import accept
from chronos.runtime import Runtime


@pytest.fixture
def run(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("chronos.runtime.runtime", lambda: runtime)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, list(words))
        if isinstance(done.exception, BadInput):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_people_are_let_in_listed_and_sent_away(run: Any) -> None:
    assert run("list") == "nobody has a role\n"
    assert run("grant", "77", "editor") == "77 is editor now\n"
    assert json.loads(run("grant", "78", "admin", "--json")) == {"id": 78, "role": "admin", "before": None}
    assert [(person["id"], person["role"]) for person in json.loads(run("list", "--json"))] == [
        (78, "admin"),
        (77, "editor"),
    ]
    assert run("revoke", "77") == "77 has no role any more\n"
    with pytest.raises(BadInput, match="last admin"):
        run("revoke", "78")
    with pytest.raises(BadInput, match="no role: choose one of user, editor, admin"):
        run("grant", "77", "king")


def test_an_invitation_works_once(run: Any, runtime: Runtime) -> None:
    code = json.loads(run("invite", "--json"))["code"]
    assert accept(runtime, code, 5) == "admin"
    assert accept(runtime, code, 6) is None
