"""Why a task waits, in the words of a chat: the same reasons in the same order as chronos/explain.py."""

from __future__ import annotations

from chronos import failures
from chronos.cards.clock import moment_of
from chronos.cards.facts import CardFacts
from chronos.language import language_of
from chronos.task_facts import Facts


def why_it_waits(facts: CardFacts, language: str) -> str:
    """Empty: nothing holds it up, it starts at once."""
    task, around = facts.task, facts.around
    if around is None:
        return ""
    if task.run_at > around.now:
        return _until_its_time(facts, around, language)
    ru = language == "ru"
    if around.paused:
        until = ""
        if around.paused_until is not None:
            until = f" {'до' if ru else 'until'} {moment_of(around.paused_until, around.now, facts.zone, language)}"
        return f"остановлено администратором{until}" if ru else f"paused by an admin{until}"
    if not around.living:
        return "ждёт: сейчас некому её выполнить" if ru else "waits: nobody is there to run it"
    if full := next((limit for limit in around.limits if limit.full), None):
        most = full.max_running
        return f"ждёт: одновременно идёт не больше {most}" if ru else f"waits: at most {most} run at once"
    if slow := next((limit for limit in around.limits if limit.step and limit.ahead > 1), None):
        ahead = language_of(language).duration(slow.ahead)
        return f"ждёт: лимит, пойдёт через {ahead}" if ru else f"waits: a limit, it goes on in {ahead}"
    if around.busy >= sum(worker.threads for worker in around.living):
        return "ждёт своей очереди" if ru else "waits for its turn"
    return ""


def _until_its_time(facts: CardFacts, around: Facts, language: str) -> str:
    task, ru = facts.task, language == "ru"
    when = moment_of(task.run_at, around.now, facts.zone, language)
    last = next((e for e in reversed(around.events) if e.kind in ("retry", "later", "crash", "revived")), None)
    if last is None or last.kind == "revived":
        return f"начнётся в {when}" if ru else f"starts at {when}"
    said = failures.for_a_chat(last.detail, task.error_class if last.kind != "later" else None, language)
    why = f" ({said})" if said else ""
    if last.kind == "later":
        return f"ждёт{why}, пойдёт в {when}" if ru else f"waits{why}, goes on at {when}"
    return f"не получилось{why}, попробую снова в {when}" if ru else f"it did not work{why}, tried again at {when}"
