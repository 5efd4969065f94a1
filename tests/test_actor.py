"""Writing an actor: what is refused when it is declared, submitted or sent, always in one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

HEAD = """
from chronos.actors import broker
from chronos.actor import actor
from chronos.errors import BadInput
from chronos.middleware.context import Context
from chronos.models.params import Params


class Greeting(Params):
    name: str
    times: int = 1
"""
GREET = """
@actor(queue="system", params=Greeting)
def greet(params: Greeting, ctx: Context) -> None:
    pass
"""


def answer_of(database_url: str, code: str) -> str:
    """What the code says: in a process of its own, for actors are declared once per process."""
    program = f"{HEAD}\ntry:\n" + "\n".join("    " + line for line in code.splitlines())
    program += "\nexcept BadInput as error:\n    print('refused:', error)\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CHRONOS_DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (GREET + "greet.send()", "refused: greet.send() goes past the engine"),
        (GREET + "greet.send_with_options()", "refused: greet.send() goes past the engine"),
        (GREET + "greet.submit({})", "refused: params of greet: name: field required"),
        (GREET + "greet.submit({'name': 'Ann', 'time': 2})", "refused: params of greet: time: extra inputs"),
        (GREET.replace("system", "nowhere"), "refused: unknown queue 'nowhere': choose one of report"),
        (GREET.replace("params=Greeting)", "params=Greeting, timeout=500)"), "refused: timeout 500"),
        (GREET.replace('system", ', 'post", concurrency=11, '), "refused: concurrency 11 of an actor on 'post'"),
        (GREET.replace('system", ', 'post", rate="4000/min", '), "at most the queue's 50"),
        (
            GREET.replace('system", ', 'post", rate="often", '),
            "refused: rate 'often': write it as 5/s, 100/min or 20/h",
        ),
        (GREET + "print(greet.submit(Greeting(name='Ann')).created)", "True"),
        (GREET + "print(greet.submit({'name': 'Ann'}, priority=1, idempotency_key='k').created)", "True"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(database_url: str, code: str, words: str) -> None:
    answer = answer_of(database_url, code)
    assert words in answer
    assert "\n" not in answer


def test_a_rate_may_be_narrowed_per_minute(database_url: str) -> None:
    code = GREET.replace('system", ', 'post", rate="120/min", concurrency=3, ')
    code += """
from chronos.middleware.rate_limits import declared_limits
print(next(row for row in declared_limits(broker) if row["key"] == "actor:greet"))
"""
    expected = {"key": "actor:greet", "queue": "post", "task_name": "greet", "step": 0.5, "max_running": 3}
    assert answer_of(database_url, code) == str(expected)
