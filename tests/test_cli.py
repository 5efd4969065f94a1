"""Bad input at the command line: one clear line, exit 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.processes import ROOT


def chronos(database_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "chronos.cli", *arguments],
        env={**os.environ, "CHRONOS_DATABASE_URL": database_url, "COLUMNS": "200"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["task", "submit", "ping", "--queue", "nowhere"], "unknown queue"),
        (["task", "submit", "pong"], "unknown task 'pong'"),
        (["task", "submit", "ping", "{"], "not JSON"),
        (["task", "submit", "ping", '{"sya": "x"}'], "sya"),
        (["task", "submit", "ping", '{"say": "a\\u0000"}'], "NUL"),
        (["task", "submit", "ping", "--expires", "2020-01-01T00:00:00+00:00"], "past"),
        (["task", "show", "zzz"], "no task id"),
        (["queue", "pause", "post", "--for", "soon"], "no duration"),
        (["dlq", "retry"], "which ones?"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(database_url: str, arguments: list[str], words: str) -> None:
    answer = chronos(database_url, *arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert answer.stderr.startswith("chronos: ") and answer.stderr.count("\n") == 1
    assert json.loads(chronos(database_url, "task", "list", "--json").stdout) == []


def test_a_wrong_setting_is_named_in_one_line() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "chronos.cli", "config"],
        env={**os.environ, "CHRONOS_LEASE_SECONDS": "soon"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert answer.stderr.startswith("chronos: CHRONOS_LEASE_SECONDS: ") and answer.stderr.count("\n") == 1


def test_secrets_are_hidden_in_config(database_url: str) -> None:
    password = database_url.split("//")[1].split("@")[0].partition(":")[2] or "no password"
    answer = chronos(database_url, "config", "--json")
    assert answer.returncode == 0
    assert password not in answer.stdout


def test_a_pause_and_a_resume_show_in_the_list(database_url: str) -> None:
    chronos(database_url, "queue", "pause", "post", "--for", "10m")
    rows = {row["queue"]: row for row in json.loads(chronos(database_url, "queue", "list", "--json").stdout)}
    assert rows["post"]["paused"].startswith("until") and rows["report"]["paused"] is None
    chronos(database_url, "queue", "resume", "post")
    rows = {row["queue"]: row for row in json.loads(chronos(database_url, "queue", "list", "--json").stdout)}
    assert rows["post"]["paused"] is None
