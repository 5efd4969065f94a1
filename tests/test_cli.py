"""The command line: every error is one line, every answer is the database's, for people and as JSON."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
import psycopg
import pytest
import typer.main
from pydantic import SecretStr
from sqlalchemy import text

from chronos.cli import main
from chronos.cli.app import app
from chronos.config import Settings, settings
from chronos.engine import tasks
from chronos.engine.tasks import Claimed
from chronos.models.new_task import NewTask
from chronos.queues import POLICIES
from chronos.runtime import Runtime
from chronos.runtime import runtime as the_runtime
from private_services import PrivatePostgres
from tests.conftest import TEMPLATE
from tests.processes import ROOT


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Chronos:
    """`chronos ...` in this process: a new one takes a second to import everything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str | None) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        for name in os.environ:
            if name.startswith("CHRONOS_"):
                monkeypatch.delenv(name)
        if url is not None:
            monkeypatch.setenv("CHRONOS_DATABASE_URL", url)

    def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        self.monkeypatch.setattr(sys, "argv", ["chronos", *arguments])
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        settings.cache_clear()
        the_runtime.cache_clear()
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        said = self.capsys.readouterr()
        return Answer(int(exit_.value.code or 0), said.out, said.err)


@pytest.fixture
def chronos(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chronos:
    return Chronos(monkeypatch, capsys, database_url)


def is_one_line(answer: Answer, *words: str, code: int) -> bool:
    assert answer.code == code, answer
    assert answer.err.startswith("chronos: ") and answer.err.count("\n") == 1, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err, answer.err
    return True


# ----------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["task", "submit", "ping", "--queue", "nowhere"], "unknown queue 'nowhere'"),
        (["task", "submit", "ping", "--queue", "post"], "lives in queue 'system'"),
        (["task", "submit", "pong"], "unknown task 'pong': known are alarm, keep_house, ping, report, tell"),
        (["task", "submit", "tick_prune"], "unknown task"),
        (["task", "submit", "ping", "{"], "not JSON"),
        (["task", "submit", "ping", "[" * 100_000], "not JSON"),
        (["task", "submit", "ping", "[]"], "must be a JSON object"),
        (["task", "submit", "ping", '{"sya": "x"}'], "params of ping: sya"),
        (["task", "submit", "ping", '{"say": "a\\u0000"}'], "NUL"),
        (["task", "submit", "ping", '{"seconds": NaN}'], "seconds"),
        (["task", "submit", "ping", '{"say": "\\ud800"}'], "ping"),
        (["task", "submit", "ping", "--key", "taken", '{"say": "other"}'], "belongs to another task"),
        (["task", "submit", "ping", "--key", "a\x00b"], "NUL"),
        (["task", "submit", "ping", "--expires", "2020-01-01T00:00:00+00:00"], "past"),
        (["task", "submit", "ping", "--expires", "5m", "--at", "10m"], "before run_at"),
        (["task", "submit", "ping", "--at", "2030-01-01T00:00:00"], "no time zone"),
        (["task", "submit", "ping", "--at", "soon"], "no time"),
        (["task", "submit", "ping", "--at", "99999999999999999999d"], "no time"),
        (["task", "submit", "ping", "--priority", "10"], "priority 10"),
        (["task", "submit", "ping", "--priority", "high"], "--priority"),
        (["task", "submit", "ping", "@/no/such/file"], "cannot read /no/such/file: No such file"),
        (["task", "submit", "ping", "@/"], "cannot read /: Is a directory"),
        (["task", "submit", "ping", "-"], "standard input: not JSON"),
        (["task", "list", "--status", "done"], "unknown status 'done': choose one of pending, in_progress"),
        (["task", "list", "--queue", "nowhere"], "unknown queue"),
        (["task", "list", "--limit", "0"], "--limit"),
        (["task", "show", "zzz"], "no task id"),
        (["task", "show", "0" * 32], "there is no task"),
        (["task", "explain", "0000"], "there is no task"),
        (["task", "cancel", "ffff"], "there is no task"),
        (["task", "retry"], "Missing argument 'ID'"),
        (["queue", "pause", "nowhere"], "unknown queue"),
        (["queue", "pause", "post", "--for", "soon"], "no duration"),
        (["queue", "pause", "post", "--for", "0m"], "no time at all"),
        (["queue", "resume", "nowhere"], "unknown queue"),
        (["dlq", "retry"], "which ones?"),
        (["dlq", "clear"], "which ones?"),
        (["dlq", "retry", str(uuid.UUID(int=1))], "there is no dead letter"),
        (["dlq", "clear", "abc"], "there is no dead letter"),
        (["dlq", "show", "no-hex"], "no id of a dead letter"),
        (["dlq", "clear", "--cause", "%"], "no cause"),
        (["dlq", "list", "--queue", "nowhere"], "unknown queue"),
        (["report", "--period", "soon"], "'soon' is no period: write today, 7d"),
        (["report", "--period", "2026-02-30"], "'2026-02-30' is no period"),
        (["report", "--period", "2026-01-02..2026-01-01"], "2026-01-01 is before 2026-01-02"),
        (["report", "--period", "0d"], "1 to 200 days, not 0"),
        (["report", "--period", "2999-01-01"], "is in the future"),
        (["report", "--zone", "Moscow"], "'Moscow' is no time zone"),
        (["report", "--language", "de"], "ru or en, not 'de'"),
        (["report", "--png", "/no/such/folder/a.png"], "cannot write /no/such/folder/a.png: No such file"),
        (["task", "submit", "report", '{"period": "soon"}'], "params of report: period: 'soon' is no period"),
        (["task", "submit", "report", '{"zone": "../x"}'], "no time zone"),
        (["nonsense"], "No such command 'nonsense'"),
        (["task", "submit", "ping", "--nonsense"], "No such option: --nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_and_disturbs_nothing(
    untouched: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    before = everything(untouched)
    chronos = Chronos(monkeypatch, capsys, untouched.database.engine.url.render_as_string(hide_password=False))
    assert is_one_line(chronos(*arguments), words, code=2)
    assert everything(untouched) == before


@pytest.fixture(scope="module")
def untouched(postgres: PrivatePostgres) -> Iterator[Runtime]:
    """One database for all bad input: none of it may change anything there."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {TEMPLATE}")
    made = Runtime(Settings(database_url=SecretStr(postgres.url.rsplit("/", 1)[0] + "/" + name)))
    ping = {"say": "pong", "seconds": 0.0, "fail": None}
    made.submit(NewTask("system", "ping", ping, idempotency_key="taken"), NewTask("post", "ping"))
    fail(made, NewTask("report", "ping"), "no")
    yield made
    made.close()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


def everything(runtime: Runtime) -> list[Any]:
    with runtime.database.statement() as connection:
        return [
            connection.execute(text(f"select * from {table}")).all()
            for table in ("tasks", "task_events", "dead_letters", "queue_states")
        ]


def test_too_big_params_are_refused(chronos: Chronos) -> None:
    assert is_one_line(chronos("task", "submit", "keep_house", json.dumps({"job": "x" * 70_000})), "bytes", code=2)
    assert chronos("task", "list").out == "no tasks\n"


def test_an_ambiguous_id_asks_for_more_of_it(chronos: Chronos, runtime: Runtime) -> None:
    runtime.submit(NewTask("system", "ping"), NewTask("system", "ping"))
    assert is_one_line(chronos("task", "show", "0"), "more than one task begins with 0", code=2)


def test_what_has_ended_cannot_be_cancelled_retried_or_have_arrived(chronos: Chronos, runtime: Runtime) -> None:
    id_ = str(runtime.submit(NewTask("system", "ping"))[0].id)
    assert chronos("task", "cancel", id_).out == "cancelled\n"
    assert is_one_line(chronos("task", "cancel", id_), "is cancelled: there is nothing to cancel", code=2)
    assert is_one_line(chronos("task", "retry", id_), "only failed and unknown", code=2)
    assert is_one_line(chronos("task", "arrived", id_), "only an unknown one", code=2)


# ------------------------------------------------------------------------------- settings and the database


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("CHRONOS_LEASE_SECONDS", "soon", "valid number"),
        ("CHRONOS_POOL_SIZE", "1", "greater than or equal to 4"),
        ("CHRONOS_LOG_FORMAT", "xml", "'pretty' or 'json'"),
        ("CHRONOS_STATEMENT_TIMEOUT_SECONDS", "inf", "less than or equal"),
        ("CHRONOS_CONNECT_TIMEOUT_SECONDS", "inf", "less than or equal"),
        ("CHRONOS_KEEP_COMPLETED_DAYS", "inf", "less than or equal"),
        ("CHRONOS_DATABASE_URL", "mysql://me:hunter2@there/db", "no address of PostgreSQL"),
        ("CHRONOS_AMQP_URL", "amqp://me:hunter2@there:port/", "no address of RabbitMQ"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line_without_its_secrets(
    chronos: Chronos, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    answer = chronos("config")
    assert is_one_line(answer, name, words, code=2)
    assert "hunter2" not in answer.err


def test_a_log_file_that_cannot_be_written_is_named_in_one_line(
    chronos: Chronos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHRONOS_LOG_FILE", "/no/such/folder/x.log")
    answer = chronos("worker")
    assert is_one_line(answer, "CHRONOS_LOG_FILE: cannot write to /no/such/folder/x.log: No such file", code=2)


def test_a_missing_database_is_named_in_one_line(
    chronos: Chronos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CHRONOS_DATABASE_URL")
    monkeypatch.setenv("CHRONOS_DATA_DIR", str(tmp_path))
    assert is_one_line(chronos("task", "list"), "CHRONOS_DATABASE_URL is not set", "`chronos up`", code=2)


def test_a_module_that_cannot_be_imported_is_named_in_one_line(database_url: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "chronos.cli", "task", "submit", "ping"],
        env={**os.environ, "CHRONOS_DATABASE_URL": database_url, "CHRONOS_ACTORS": "no_such_module"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = Answer(answer.returncode, answer.stdout, answer.stderr)
    assert is_one_line(said, "CHRONOS_ACTORS: cannot import no_such_module", code=2)


def test_config_explains_every_setting_and_hides_secrets(chronos: Chronos, database_url: str) -> None:
    password = database_url.split("//")[1].split("@")[0].partition(":")[2]
    for answer in (chronos("config"), chronos("config", "--json")):
        assert answer.code == 0 and len(password) > 10 and password not in answer.out
        for name, field in Settings.model_fields.items():
            assert f"CHRONOS_{name.upper()}" in answer.out
            assert str(field.description).split(";")[0] in " ".join(answer.out.split())


def test_config_and_doctor_name_a_misspelt_setting(chronos: Chronos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHRONOS_LEASE_SECOND", "5")
    words = "CHRONOS_LEASE_SECOND is no setting: is it CHRONOS_LEASE_SECONDS?"
    assert words in chronos("config").out
    assert words in chronos("doctor").out


EVERY_COMMAND = [
    ["task", "submit", "ping"], ["task", "list"], ["task", "show", "ab"], ["task", "explain", "ab"],
    ["task", "cancel", "ab"], ["task", "retry", "ab"], ["task", "arrived", "ab"],
    ["queue", "list"], ["queue", "pause", "post"], ["queue", "resume", "post"],
    ["report"], ["dlq", "list"], ["dlq", "show"], ["dlq", "retry", "--all"], ["dlq", "clear", "--all"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=" ".join)
def test_a_database_without_schema_is_one_line_with_what_to_run(
    postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    chronos = Chronos(monkeypatch, capsys, postgres.url)
    assert is_one_line(chronos(*arguments), "run `chronos db upgrade`", code=1)


@pytest.mark.parametrize("arguments", [*EVERY_COMMAND, ["db", "status"]], ids=" ".join)
def test_a_database_that_is_away_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setenv("CHRONOS_CONNECT_TIMEOUT_SECONDS", "1")
    chronos = Chronos(monkeypatch, capsys, "postgresql://nobody:hunter2@127.0.0.1:1/none")
    answer = chronos(*arguments)
    assert is_one_line(answer, "PostgreSQL", "refused", code=1)
    assert "hunter2" not in answer.err


def test_db_upgrade_makes_the_schema_and_status_tells(
    postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"empty_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    chronos = Chronos(monkeypatch, capsys, postgres.url.rsplit("/", 1)[0] + "/" + name)
    assert chronos("db", "status").code == 1
    assert chronos("db", "upgrade", "--json").json["before"] is None
    assert chronos("db", "status").code == 0
    assert "already" in chronos("db", "upgrade").out
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


# ---------------------------------------------------------------------------------------------- the shape


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [leaf for name, child in inner.items() for leaf in leaves(child, (*path, name))]


def test_every_command_has_json_and_is_in_the_documents() -> None:
    commands = leaves(typer.main.get_command(app))
    assert len(commands) == 30
    without = [path for path, command in commands if not any("--json" in p.opts for p in command.params)]
    assert without == [("bot",), ("worker",)]  # their answers are logs: CHRONOS_LOG_FORMAT=json
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert [path for path, _ in commands if f"| `chronos {' '.join(path)}` |" not in page] == []


def test_help_imports_nothing_that_is_slow() -> None:
    code = (
        "import sys; from chronos.cli import main; sys.argv = ['chronos', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('sqlalchemy', 'dramatiq', 'pydantic', 'pika', 'psycopg', 'structlog') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_lists_fit_80_columns_on_a_terminal_and_have_no_colours_in_a_pipe(
    chronos: Chronos, runtime: Runtime, database_url: str
) -> None:
    runtime.submit(*[NewTask("schedule", "keep_house", {"job": "x"}) for _ in range(3)])
    fail(runtime, NewTask("system", "ping"), "[bold]an error[/bold] that needs many more words than " * 5)
    code = (
        "import sys; from chronos.cli import main\n"
        "for words in ('task list', 'queue list', 'dlq list', 'config'):\n"
        "    sys.argv = ['chronos', *words.split()]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "    from chronos.runtime import runtime; runtime.cache_clear()\n"
    )
    shown = on_a_terminal([sys.executable, "-c", code], {"CHRONOS_DATABASE_URL": database_url})
    assert "keep_house" in shown and "\x1b[1m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [line for line in plain.splitlines() if len(line) > 80] == []
    piped = chronos("task", "list").out
    assert "\x1b" not in piped
    assert "[bold]an error[/bold] that needs many more words than [bold]" in piped  # neither cut nor interpreted


def on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs, cwd=ROOT,
        env={**os.environ, **environment, "COLUMNS": "80", "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            data = b""
        if not data:
            break
        shown += data
    os.close(ours)
    assert process.wait(30) == 0
    return shown.decode()


# --------------------------------------------------------------------------------------------------- tasks


def fail(runtime: Runtime, new: NewTask, why: str) -> uuid.UUID:
    """A task that a worker tried and that failed for good, by the engine's own verbs."""
    id_, token = runtime.submit(new)[0].id, uuid.uuid4()
    with runtime.database.statement() as connection:
        connection.execute(
            text(
                "update tasks set status = 'in_progress', attempt = 1, worker = :token, token = :token,"
                " started_at = clock_timestamp() where id = :id"
            ),
            {"id": id_, "token": token},
        )
        run = Claimed(id_, token, new.queue, new.task_name, 1, 1, {}, None, None, None, None)
        assert tasks.fail(connection, run, {"message": why, "class": "Boom", "traceback": "a\n  b"}) == "failed"
    return id_


def test_params_come_from_a_file_or_standard_input(chronos: Chronos, tmp_path: Path) -> None:
    file = tmp_path / "params.json"
    file.write_text('{"say": "привет"}', encoding="utf-8")
    first = chronos("task", "submit", "ping", f"@{file}", "--json").json
    second = chronos("task", "submit", "ping", "-", "--json", stdin='{"say": "hello"}').json
    assert chronos("task", "show", first["id"], "--json").json["params"]["say"] == "привет"
    assert chronos("task", "show", second["id"], "--json").json["params"]["say"] == "hello"
    file.write_bytes(b"\xff\xfe")
    assert is_one_line(chronos("task", "submit", "ping", f"@{file}"), "no UTF-8", code=2)


def test_the_same_key_and_params_are_the_same_task(chronos: Chronos) -> None:
    first = chronos("task", "submit", "ping", "--key", "once", "--json").json
    again = chronos("task", "submit", "ping", "--key", "once")
    assert again.out == f"already there: {first['id']}\n" and again.code == 0


def test_short_ids_work_in_other_commands(chronos: Chronos, runtime: Runtime) -> None:
    runtime.submit(*[NewTask("system", "ping") for _ in range(200)])
    lines = chronos("task", "list", "--limit", "1000", "--json").json
    assert len({line["short_id"] for line in lines}) == 200
    for line in lines[:3] + lines[-3:]:
        assert chronos("task", "show", line["short_id"], "--json").json["id"] == line["id"]
    assert lines[0]["short_id"] in chronos("task", "list").out


def test_the_list_shows_when_and_why(chronos: Chronos, runtime: Runtime) -> None:
    fail(runtime, NewTask("system", "ping"), "the disk is full")
    chronos("task", "submit", "ping", "--at", "10m")
    out = chronos("task", "list").out
    assert "the disk is full" in out and re.search(r"in (9 min \d+ s|10 min)", out)
    assert "the disk" not in chronos("task", "list", "--status", "pending").out


def test_show_hides_what_looks_like_a_secret(chronos: Chronos, runtime: Runtime) -> None:
    id_ = str(runtime.submit(NewTask("system", "ping", {"api_token": "hunter2", "say": "a"}))[0].id)
    for answer in (chronos("task", "show", id_), chronos("task", "show", id_, "--json")):
        assert answer.code == 0 and "hunter2" not in answer.out and "***" in answer.out


# -------------------------------------------------------------------------------------------------- queues


def test_a_pause_and_a_resume_show_in_the_list(chronos: Chronos) -> None:
    assert chronos("queue", "pause", "post", "--for", "10m").out.startswith("post is paused until ")
    rows = {row["queue"]: row for row in chronos("queue", "list", "--json").json}
    assert rows["post"]["paused"] and rows["post"]["paused_until"] and not rows["report"]["paused"]
    chronos("queue", "pause", "post")
    assert re.search(r"^post .* until resumed$", chronos("queue", "list").out, re.MULTILINE)
    assert chronos("queue", "resume", "post").out == "post goes on\n"
    assert chronos("queue", "resume", "post").out == "post was not paused\n"


def test_the_queues_show_depth_age_limits_and_dead_letters(chronos: Chronos, runtime: Runtime) -> None:
    runtime.submit(NewTask("post", "ping"), NewTask("post", "ping"))
    chronos("task", "submit", "ping", "--at", "1h")
    fail(runtime, NewTask("post", "ping"), "gone")
    rows = {row["queue"]: row for row in chronos("queue", "list", "--json").json}
    assert list(rows) == list(POLICIES)
    assert (rows["post"]["waiting"], rows["post"]["due"], rows["post"]["dead"]) == (2, 2, 1)
    assert (rows["system"]["waiting"], rows["system"]["due"]) == (1, 0)
    assert rows["post"]["oldest_due_at"] and rows["system"]["oldest_due_at"] is None
    assert "50/s, 10 at once" in chronos("queue", "list").out


# -------------------------------------------------------------------------------------------- dead letters


def test_dead_letters_are_grouped_by_cause_and_retried_by_filter(chronos: Chronos, runtime: Runtime) -> None:
    numbered = [fail(runtime, NewTask("post", "ping"), f"channel {n} is closed") for n in range(3)]
    other = fail(runtime, NewTask("report", "ping"), "no data")
    causes = chronos("dlq", "list", "--json").json
    assert [(cause["queue"], cause["count"]) for cause in causes] == [("post", 3), ("report", 1)]
    assert chronos("dlq", "list", "--queue", "report", "--json").json == causes[1:]

    assert chronos("dlq", "retry", "--cause", causes[0]["cause"]).out == "3 pending again\n"
    assert statuses(runtime) == {**dict.fromkeys(numbered, "pending"), other: "failed"}
    record = chronos("dlq", "show", str(other), "--json").json[0]
    assert record["failureReason"] == "no data" and record["originalJobId"] == str(other)
    assert "no data" in chronos("dlq", "show", str(other)[:20]).out
    assert chronos("dlq", "retry", record["id"]).out == "1 pending again\n"
    assert set(statuses(runtime).values()) == {"pending"}
    assert chronos("dlq", "list").out == "no dead letters\n"


def statuses(runtime: Runtime) -> dict[uuid.UUID, str]:
    with runtime.database.statement() as connection:
        return {row.id: row.status for row in connection.execute(text("select id, status from tasks"))}


def test_one_dead_letter_is_cleared_and_the_others_stay(chronos: Chronos, runtime: Runtime) -> None:
    first, second = (fail(runtime, NewTask("post", "ping"), f"{n} no") for n in range(2))
    assert chronos("dlq", "clear", str(first)).out == "1 cleared\n"
    assert [row["originalJobId"] for row in chronos("dlq", "show", "--json").json] == [str(second)]
    assert chronos("dlq", "clear", "--queue", "report", "--json").json == {"cleared": 0}
    assert chronos("dlq", "clear", "--all", "--json").json == {"cleared": 1}


def test_messages_that_never_were_tasks_are_told_when_all_are_retried(chronos: Chronos, runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        connection.execute(
            text(
                "insert into dead_letters (id, original_queue, original_job_id, original_job_data, failure_reason,"
                " attempts_made, fingerprint) values (gen_random_uuid(), 'post', 'x', '{}', 'no JSON', 0, 'abcd')"
            )
        )
    answer = chronos("dlq", "retry", "--all")
    assert answer.out.startswith("0 pending again\n1 never were tasks")


@pytest.mark.rabbitmq
def test_clear_also_purges_the_dead_messages_of_rabbitmq(
    chronos: Chronos, amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHRONOS_AMQP_URL", amqp_url)
    chronos("dlq", "clear", "--all")  # declares the queues
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = connection.channel()

    def left(queue: str) -> int:
        return int(channel.queue_declare(f"{queue}.XQ", passive=True).method.message_count)

    for queue in ("post", "report"):
        channel.basic_publish("", f"{queue}.XQ", b"dead")
    connection.process_data_events(0)
    chronos("dlq", "clear", "--queue", "post")
    assert (left("post"), left("report")) == (0, 1)
    chronos("dlq", "clear", "--all")
    assert left("report") == 0
    connection.close()


def test_nothing_is_cleared_when_rabbitmq_is_away(
    chronos: Chronos, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(runtime, NewTask("post", "ping"), "no")
    monkeypatch.setenv("CHRONOS_AMQP_URL", "amqp://nobody:hunter2@127.0.0.1:1/")
    answer = chronos("dlq", "clear", "--all")
    assert is_one_line(answer, "RabbitMQ does not answer, so nothing was cleared", code=1)
    assert "hunter2" not in answer.err
    assert len(chronos("dlq", "list", "--json").json) == 1
