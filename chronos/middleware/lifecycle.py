"""Boots and ends a worker process: loops first, claims last; at the end nothing that was claimed is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import structlog
from dramatiq.common import iter_queue
from dramatiq.middleware import Middleware
from dramatiq.threading import raise_thread_exception

from chronos.engine import tasks
from chronos.errors import HandBack
from chronos.middleware.claim import ClaimedMessage
from chronos.runtime import EXIT_RESTART, Runtime
from private_services.parents import end_with_parent

log = structlog.get_logger("chronos.worker")


class RunWorker(Middleware):
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._running: dict[int, tuple[ClaimedMessage, float, float]] = {}
        self._worker: Any = None
        self._booted = False
        self._asked_to_stop = 0  #: how often; plain numbers, for a signal handler must take no lock
        self._done = threading.Event()

    # -- start

    def after_process_boot(self, broker: Any) -> None:
        end_with_parent()  # kill -9 of Dramatiq's master must not leave workers that nobody supervises

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        self._worker = worker
        self._listen_for_a_second_signal()
        queues = sorted(worker.consumer_whitelist or broker.get_declared_queues())
        self.runtime.boot(worker.worker_threads, queues)
        threading.Thread(target=self._watch, name="hung runs", daemon=True).start()
        self._booted = True

    def _listen_for_a_second_signal(self) -> None:
        """Dramatiq leaves at once when it is asked twice to stop; we give running work back first."""
        if threading.current_thread() is not threading.main_thread():
            return
        stop = signal.getsignal(signal.SIGTERM)

        def asked(number: int, frame: Any) -> None:
            if not self._booted:
                os._exit(0)  # it waits for PostgreSQL: nothing runs, and nobody would look at Dramatiq's flag
            self._asked_to_stop += 1
            if self._asked_to_stop == 1 and callable(stop):
                stop(number, frame)

        signal.signal(signal.SIGTERM, asked)

    # -- which thread runs what, and since when

    def before_process_message(self, broker: Any, message: Any) -> None:
        if isinstance(message, ClaimedMessage):
            limit = broker.actors[message.actor_name].options["time_limit"] / 1000
            self._running[threading.get_ident()] = (message, time.monotonic(), limit)

    def after_process_message(self, broker: Any, message: Any, *, result: Any = None, exception: Any = None) -> None:
        self._running.pop(threading.get_ident(), None)

    def after_skip_message(self, broker: Any, message: Any) -> None:
        self._running.pop(threading.get_ident(), None)

    def _watch(self) -> None:
        """A run that ignores its time limit (a C call) can only be ended with its process."""
        while not self._done.wait(1.0):
            for message, since, limit in list(self._running.values()):
                if time.monotonic() - since > limit + self.runtime.settings.hung_seconds:
                    log.error("a run hangs: this process ends", task=str(message.run.id), actor=message.actor_name)
                    self._stop_claiming()
                    if self.runtime.finisher is not None:
                        self.runtime.finisher.stop(5)
                    os._exit(EXIT_RESTART)

    # -- end

    def _stop_claiming(self) -> None:
        self.runtime.held.stopping = True
        for item in iter_queue(self._worker.work_queue):
            if isinstance(item.message, ClaimedMessage):
                self.runtime.hand_back(item.message.run, "its worker stopped before it started")
            self._worker.work_queue.task_done()

    def before_worker_shutdown(self, broker: Any, worker: Any) -> None:
        self._stop_claiming()
        threading.Thread(target=self._end_of_grace, name="end of grace", daemon=True).start()

    def _end_of_grace(self) -> None:
        """Interrupt what still runs shortly before the grace ends; leave with exit 0 whatever it does."""
        grace = self.runtime.settings.shutdown_seconds
        margin = min(3.0, grace / 4)
        ends = time.monotonic() + max(0.1, grace - margin - 1.0)  # Dramatiq notices a signal within a second
        while self._asked_to_stop < 2 and time.monotonic() < ends:
            if self._done.wait(0.1):
                return
        for thread, (message, _, _) in list(self._running.items()):
            if message.run.effects_open:
                continue  # interrupted now, a call that is about to answer would end as unknown
            log.warning("handed back: the worker stops", task=str(message.run.id))
            raise_thread_exception(thread, HandBack)
        if self._done.wait(margin / 2):
            return
        try:
            with self.runtime.database.statement() as connection:
                for message, _, _ in list(self._running.values()):
                    # Its thread may live for the last moments of this process: nobody else may start it before that.
                    tasks.hand_back(connection, message.run, "its worker stopped", wait=2.0)
            if self.runtime.finisher is not None:
                self.runtime.finisher.stop(1)
            if self.runtime.beat is not None:
                self.runtime.beat.stop()
        finally:
            os._exit(0)  # also when PostgreSQL is gone: the reaper takes what could not be handed back

    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        self._done.set()
        self.runtime.shut_down()
