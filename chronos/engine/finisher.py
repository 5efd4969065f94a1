"""Writes the outcomes of runs: whatever waits goes in one statement. An outcome is repeated until it is in.

Dramatiq swallows what its after-hooks raise, so no outcome is written in a hook: it is put here.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError

from chronos.db import Database, DatabaseTrouble, pauses
from chronos.engine import tasks
from chronos.engine.endings import Ending
from chronos.engine.held import Held
from chronos.engine.tasks import Claimed, Completion
from chronos.errors import one_line

log = structlog.get_logger("chronos.finisher")

BATCH = 512
#: After a group of so many, the next one may gather for a moment: one statement for fifty costs what one for five does.
GROUP, GATHER_SECONDS = 8, 0.01


class Finisher(threading.Thread):
    def __init__(self, database: Database, held: Held) -> None:
        super().__init__(name="finisher", daemon=True)
        self.database = database
        self.held = held
        self._endings: queue.SimpleQueue[Ending | None] = queue.SimpleQueue()
        self._abandoned = threading.Event()

    def put(self, ending: Ending) -> None:
        self._endings.put(ending)

    def run(self) -> None:
        while (first := self._endings.get()) is not None:
            batch, stop = [first], False
            while len(batch) < BATCH:
                try:
                    item = self._endings.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    stop = True
                    break
                batch.append(item)
            try:
                self._write(batch)
            except Exception:
                # Without this thread nothing that the process runs would ever be recorded.
                log.exception("a batch of outcomes failed; one by one")
                for ending in batch:
                    self._write_one(ending, ending.write or _impossible(ending.run, ValueError("see the log")))
            if stop:
                break
            if len(batch) >= GROUP:
                time.sleep(GATHER_SECONDS)

    def stop(self, timeout: float) -> None:
        """Write what is there, as long as the time allows."""
        self._endings.put(None)
        self.join(timeout)
        self._abandoned.set()

    def _write(self, batch: list[Ending]) -> None:
        completions: list[tuple[Ending, Completion]] = []
        for ending in batch:
            if ending.write is not None:
                continue
            try:
                completions.append((ending, ending.completion()))
            except Exception as error:  # a result may be any object, with any __str__
                self._write_one(ending, _impossible(ending.run, error))
        if completions:
            self._complete(completions)
        for ending in batch:
            if ending.write is not None:
                self._write_one(ending, ending.write)

    def _complete(self, completions: list[tuple[Ending, Completion]]) -> None:
        runs = [completion for _, completion in completions]

        def write() -> set[Any]:
            with self.database.statement() as connection:
                return tasks.finish(connection, runs)

        try:
            done = self._until_in(write)
        except DBAPIError:
            # One of them cannot be stored; its neighbours can.
            if len(completions) > 1:
                for one in completions:
                    self._complete([one])
            else:
                ending = completions[0][0]
                self._write_one(ending, _impossible(ending.run, ValueError("PostgreSQL cannot store the result")))
            return
        self.held.settled(ending.run for ending, _ in completions)
        for ending, _ in completions:
            self._tell(ending, "completed" if done is not None and ending.run.id in done else None)

    def _write_one(self, ending: Ending, write: Callable[[Connection], str | None]) -> None:
        def attempt() -> str | None:
            with self.database.statement() as connection:
                return write(connection)

        try:
            status = self._until_in(attempt)
        except Exception as error:
            log.error("an outcome cannot be written", task=str(ending.run.id), error=one_line(error))
            status = self._fail_instead(ending.run)
        self.held.settled([ending.run])
        self._tell(ending, status)

    def _fail_instead(self, run: Claimed) -> str | None:
        """Dropped, it would be handed back by the audit and run again, for ever."""

        def attempt() -> str | None:
            with self.database.statement() as connection:
                return tasks.fail(connection, run, {"message": "its outcome could not be written: see the log"})

        try:
            status: str | None = self._until_in(attempt)
        except Exception:
            log.exception("not even its failure can be written", task=str(run.id))
            return None
        return status

    def _tell(self, ending: Ending, status: str | None) -> None:
        if ending.then is not None:
            try:
                ending.then(status)
            except Exception:
                log.exception("a hook failed", task=str(ending.run.id))

    def _until_in(self, write: Callable[[], Any]) -> Any:
        for pause in pauses(longest=1.0):
            try:
                return write()
            except DatabaseTrouble as error:
                if _is_hopeless(error):
                    raise
                if self._abandoned.is_set():
                    return None
            time.sleep(pause)
        return None


def _is_hopeless(error: Exception) -> bool:
    """Data that PostgreSQL will never take. All else (a lock, a timeout, a full disk) passes, and the outcome waits."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    return state[:2] in {"22", "23", "42", "54"} or isinstance(error, DataError)


def _impossible(run: Claimed, error: BaseException) -> Callable[[Connection], str | None]:
    return lambda connection: tasks.fail(
        connection,
        run,
        {"message": f"the result cannot be stored: {one_line(error)}", "class": type(error).__name__},
    )
