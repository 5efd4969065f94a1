"""Boots and ends a worker process: loops first, claims last; at the end nothing that was claimed is lost."""

from __future__ import annotations

import os
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

log = structlog.get_logger("chronos.worker")


class RunWorker(Middleware):
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._running: dict[int, tuple[ClaimedMessage, float, float]] = {}
        self._worker: Any = None
        self._done = threading.Event()

    # -- start

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        self._worker = worker
        queues = sorted(worker.consumer_whitelist or broker.get_declared_queues())
        self.runtime.boot(worker.worker_threads, queues)
        threading.Thread(target=self._watch, name="hung runs", daemon=True).start()

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
        if self._done.wait(max(0.1, grace - margin - 1.0)):  # Dramatiq notices a signal within a second
            return
        for thread, (message, _, _) in list(self._running.items()):
            log.warning("handed back: the worker stops", task=str(message.run.id))
            raise_thread_exception(thread, HandBack)
        if self._done.wait(margin / 2):
            return
        with self.runtime.database.statement() as connection:
            for message, _, _ in list(self._running.values()):
                # Its thread may live for the last moments of this process: nobody else may start it before that.
                tasks.hand_back(connection, message.run, "its worker stopped", wait=2.0)
        if self.runtime.finisher is not None:
            self.runtime.finisher.stop(1)
        if self.runtime.beat is not None:
            self.runtime.beat.stop()
        os._exit(0)

    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        self._done.set()
        self.runtime.shut_down()
