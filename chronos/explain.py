"""Why is this task not running? One sentence, when it will move, what a person can do, and its story."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from chronos.durations import clock, in_words, relative
from chronos.models import TaskStateRecord
from chronos.queues import POLICIES
from chronos.runtime import Runtime
from chronos.task_facts import Facts, facts_about

#: Beats come three times per lease: a worker that has been silent for two thirds of it missed two.
MISSED_BEATS = 2 / 3
#: A due task that nothing holds up is taken within this time; later something is wrong that we do not see.
SURELY_TAKEN_SECONDS = 5.0


@dataclass(frozen=True)
class Moment:
    at: datetime
    what: str


@dataclass
class Story:
    id: Any
    status: str
    now: str  #: one sentence
    moves_at: datetime | None = None  #: None: when somebody or something else acts, see `now`
    advice: list[str] = field(default_factory=list)  #: commands that would help
    events: list[Moment] = field(default_factory=list)


def explain(runtime: Runtime, task: TaskStateRecord) -> Story:
    with runtime.database.statement() as connection:
        facts = facts_about(connection, runtime, task)
    story = Story(task.id, str(task.status), "")
    if task.status == "pending":
        _waits(story, task, facts)
    elif task.status == "in_progress":
        _runs(story, task, facts)
    else:
        _ended(story, task, facts)
    story.now = f"{task.task_name} {task.id} {story.now}"
    story.events = sorted(_events(task, facts), key=lambda event: event.at)
    return story


# --------------------------------------------------------------------------------------------- sentences


def _waits(story: Story, task: TaskStateRecord, facts: Facts) -> None:
    """The first reason that applies is told; a pause on top of another reason is added."""
    paused = ""
    if facts.paused:
        until = f"until {clock(facts.paused_until, facts.now)}" if facts.paused_until else "until it is resumed"
        paused = f"queue {task.queue} is paused {until}"
        story.advice.append(f"chronos queue resume {task.queue}")
    if task.expires_at is not None and task.expires_at <= facts.now:
        story.now = f"waits, but it expired {relative(task.expires_at, facts.now)} and will not run any more"
        story.advice.clear()
    elif task.run_at > facts.now:
        story.now = f"waits {_until_its_time(task, facts)}" + (f"; {paused} as well" if paused else "")
        story.moves_at = _later(task.run_at, facts)
    elif paused:
        story.now = f"waits: {paused}"
        story.moves_at = facts.paused_until
    elif not facts.living:
        story.now = f"waits: {_nobody(task.queue, facts)}"
        story.advice.append("chronos worker")
    elif task.error_class == "UnknownActor" and facts.events and facts.events[-1].kind == "refused":
        # Refused once and never claimed since: the workers do not know it.
        fails_at = facts.events[-1].at + timedelta(minutes=facts.unknown_actor_minutes)
        story.now = (
            f"waits for a worker that knows it ({task.error_message}); it fails"
            f" at {clock(fails_at, facts.now)} if none comes"
        )
        story.moves_at = fails_at
    elif full := next((limit for limit in facts.limits if limit.full), None):
        story.now = f"waits: {full.whose} may run {full.max_running} at once, and {full.running} run"
        if full.oldest is not None:
            ends = full.oldest + _time_limit(task.queue)
            story.now += f"; it moves when one of them ends, at the latest at {clock(ends, facts.now)}"
            story.moves_at = max(ends, facts.now)
    elif slow := next((limit for limit in facts.limits if limit.step and limit.ahead > 0), None):
        story.now = (
            f"waits: {slow.whose} may start {_rate(slow.step or 1)},"
            f" the next one in {in_words(slow.ahead)}{_in_line(facts)}"
        )
        story.moves_at = facts.now + timedelta(seconds=slow.ahead + (slow.step or 0) * facts.before)
    elif facts.busy >= (threads := sum(worker.threads for worker in facts.living)):
        story.now = f"waits for a free thread: all {threads} are busy{_in_line(facts)}"
    else:
        due = (facts.now - task.run_at).total_seconds()
        story.now = f"is due and will be taken at once by {_workers(len(facts.living))}{_in_line(facts)}"
        story.moves_at = facts.now
        if due > SURELY_TAKEN_SECONDS + facts.lease:
            story.now = (
                f"has been due for {in_words(due)} and {_workers(len(facts.living))} could take it"
                f"{_in_line(facts)}: look at the workers' logs"
            )
            story.advice.append("chronos doctor")
            story.moves_at = None


def _until_its_time(task: TaskStateRecord, facts: Facts) -> str:
    """Why its time has not come, after the last exception of its life."""
    when = f"until {clock(task.run_at, facts.now)}"
    last = next((e for e in reversed(facts.events) if e.kind in ("retry", "later", "crash", "revived")), None)
    if last is None or last.kind == "revived":
        return f"for its time, {clock(task.run_at, facts.now)}"
    if last.kind == "later":
        return f"{when}: its actor asked for that ({last.detail})"
    what = "failed" if last.kind == "retry" else "ended with its worker"
    return f"{when}: run {task.attempt} of {task.max_attempts} {what} ({last.detail})"


def _later(moment: datetime, facts: Facts) -> datetime | None:
    """The moment, or the end of the pause when that is later; None: a pause without an end."""
    if not facts.paused:
        return moment
    return None if facts.paused_until is None else max(moment, facts.paused_until)


def _nobody(queue: str, facts: Facts) -> str:
    if not facts.workers:
        return f"no worker serves queue {queue}"
    last = min(facts.workers, key=lambda worker: worker.silent)
    return f"no living worker serves queue {queue}; {last.name} was last seen {in_words(last.silent)} ago"


def _runs(story: Story, task: TaskStateRecord, facts: Facts) -> None:
    worker = facts.worker
    since = f"since {clock(task.started_at, facts.now)}" if task.started_at else ""
    story.now = f"runs {since}, run {task.attempt} of {task.max_attempts}"
    story.now += f", on {worker.name}" if worker else ""
    if task.progress and task.progress.get("total"):
        story.now += f", {100 * task.progress['done'] / task.progress['total']:.0f} %"
    if worker is None or worker.dead or worker.silent > facts.lease:
        why = "its worker is gone" if worker is None else f"its worker {worker.name} is dead"
        story.now = f"{why}{f' ({worker.death})' if worker and worker.death else ''}: "
        if facts.living:
            story.now += "it is taken back within 2 s"
            story.moves_at = facts.now + timedelta(seconds=2)
        else:
            story.now += "the next worker that starts takes it back"
            story.advice.append("chronos worker")
    elif worker.silent > facts.lease * MISSED_BEATS:
        dead_at = worker.beat_at + timedelta(seconds=facts.lease)
        story.now = (
            f"is stuck: its worker {worker.name} missed two beats (the last one was {in_words(worker.silent)}"
            f" ago); silent until {clock(dead_at, facts.now)}, it is dead and the task is taken back"
        )
        story.moves_at = dead_at
    elif task.started_at is not None:
        story.moves_at = task.started_at + _time_limit(task.queue)
    if task.cancel_requested_at is not None:
        story.now += f"; it was asked to stop {relative(task.cancel_requested_at, facts.now)}"


def _ended(story: Story, task: TaskStateRecord, facts: Facts) -> None:
    ended = relative(task.finished_at, facts.now) if task.finished_at else ""
    why = f": {task.error_message}" if task.error_message else ""
    if task.status == "unknown":
        effects = f" (effects: {', '.join(facts.doubtful)})" if facts.doubtful else ""
        story.now = f"ended as unknown {ended}{why}{effects}. Look whether it arrived, then say so or send it again"
        story.advice += [f"chronos task arrived {task.id}", f"chronos task retry {task.id}"]
    elif task.status == "failed":
        story.now = f"failed {ended}, after run {task.attempt} of {task.max_attempts}{why}"
        story.advice += [f"chronos dlq show {task.id}", f"chronos task retry {task.id}"]
    elif task.status == "completed" and task.started_at and task.finished_at:
        took = (task.finished_at - task.started_at).total_seconds()
        story.now = f"was completed {ended}, run {task.attempt} took {in_words(max(0.0, took))}"
    else:
        verb = "expired" if task.status == "expired" else f"was {task.status}"
        story.now = f"{verb} {ended}{why}"


def _time_limit(queue: str) -> timedelta:
    """The longest that a run of this queue may take; an actor may have less."""
    return timedelta(seconds=POLICIES[queue].time_limit if queue in POLICIES else 600)


def _workers(count: int) -> str:
    return "the one living worker" if count == 1 else f"one of {count} living workers"


def _in_line(facts: Facts) -> str:
    return f"; {facts.before} due ones are before it" if facts.before else ""


def _rate(step: float) -> str:
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if step <= seconds:
            return f"{round(seconds / step, 2):g}/{unit}"
    return f"one in {in_words(step)}"


# ------------------------------------------------------------------------------------------------- story


def _events(task: TaskStateRecord, facts: Facts) -> Iterator[Moment]:
    yield Moment(task.created_at, f"accepted in queue {task.queue}")
    for event in facts.events:
        run = f" (run {event.attempt})" if event.attempt else ""
        yield Moment(event.at, f"{event.kind}{run}" + (f": {event.detail}" if event.detail else ""))
    if task.started_at:
        where = f" on {facts.worker.name}" if facts.worker else ""
        again = "last " if any(event.attempt for event in facts.events) else ""
        yield Moment(task.started_at, f"{again}run started{where}")
    if task.cancel_requested_at and not any(e.kind.startswith("cancel") for e in facts.events):
        yield Moment(task.cancel_requested_at, "cancel asked")
    if task.finished_at and not any(e.kind == task.status for e in facts.events):
        yield Moment(task.finished_at, str(task.status))
