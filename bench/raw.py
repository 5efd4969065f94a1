"""Raw Dramatiq on RabbitMQ, as it comes: no state, default middleware, default prefetch."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from bench.marks import count_me, tell_now

broker = RabbitmqBroker(url=os.environ["BENCH_AMQP_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="raw")
def noop() -> None:
    count_me()


@dramatiq.actor(queue_name="raw")
def stamp() -> None:
    tell_now()
