"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from chronos.config import Settings
from chronos.models import MOVES
from chronos.models.new_task import NewTask
from tests.processes import Workers

ROOT = Path(__file__).parent.parent


def lifecycle() -> str:
    lines = ["```mermaid", "stateDiagram-v2", "  [*] --> pending: submit"]
    for (old, new), verbs in MOVES.items():
        lines += [f"  {old} --> {new}: {verb}" for verb in verbs]
    lines += ["```", "", "| from | to | verb | why |", "|---|---|---|---|"]
    for (old, new), verbs in MOVES.items():
        lines += [f"| {old} | {new} | `{verb}` | {why} |" for verb, why in verbs.items()]
    return "\n".join(lines)


def test_the_lifecycle_graph_is_the_codes() -> None:
    assert lifecycle() in (ROOT / "docs/lifecycle.md").read_text(encoding="utf-8")


def test_every_verb_of_the_lifecycle_is_a_function_of_the_engine() -> None:
    from chronos.engine import tasks

    assert all(callable(getattr(tasks, verb)) for verbs in MOVES.values() for verb in verbs)


def test_every_setting_is_explained() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_the_example_actor_runs(embedded: Workers) -> None:
    page = (ROOT / "docs/adding-an-actor.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (embedded.folder / "example_actors.py").write_text(code, encoding="utf-8")
    embedded.environment["PYTHONPATH"] += f":{embedded.folder}"
    embedded.environment["CHRONOS_ACTORS"] = "example_actors"
    embedded.start(1)
    embedded.runtime.submit(NewTask("system", "greet", {"name": "Ann"}))
    assert embedded.all_final() == {"completed": 1}
    assert embedded.sql("select result_payload from tasks") == [({"text": "Hello, Ann!"},)]
