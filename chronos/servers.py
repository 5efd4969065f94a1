"""The servers of `chronos up`: the user's own where an address is set, else private ones, started and kept up."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import SecretStr

from chronos.config import Settings
from chronos.invocation import short
from private_services import PrivatePostgres, PrivateRabbitMQ

#: (part, state, more), or ("", words, ""): how `up` tells what happens.
Say = Callable[[str, str, str], None]


class Servers:
    def __init__(self, configuration: Settings, say: Say) -> None:
        self._configuration, self._say = configuration, say
        self._private: list[PrivatePostgres | PrivateRabbitMQ] = []

    def start(self, rabbitmq: bool) -> dict[str, str]:
        """Their addresses, as settings; also written into the configuration of this process."""
        configuration, folder = self._configuration, self._configuration.data_dir
        if configuration.database_url is None:
            postgres = PrivatePostgres(folder / "postgres")
            took = self._start(postgres)
            configuration.database_url = SecretStr(postgres.url)
            self._say("PostgreSQL (embedded)", took, f"data  {short(folder)}")
        else:
            self._say("PostgreSQL", "yours", "CHRONOS_DATABASE_URL")
        addresses = {"CHRONOS_DATABASE_URL": configuration.database_url.get_secret_value()}
        if configuration.amqp_url is not None:
            self._say("RabbitMQ", "yours", "CHRONOS_AMQP_URL")
        elif rabbitmq:
            broker = PrivateRabbitMQ(folder / "rabbitmq")
            took = self._start(broker)
            configuration.amqp_url = SecretStr(broker.url)
            self._say("RabbitMQ (private)", took, "")
        else:
            self._say("broker", "in-process", "RabbitMQ: chronos up --rabbitmq")
        if configuration.amqp_url is not None:
            addresses["CHRONOS_AMQP_URL"] = configuration.amqp_url.get_secret_value()
        return addresses

    def _start(self, service: PrivatePostgres | PrivateRabbitMQ) -> str:
        started = time.monotonic()
        self._private.append(service)
        service.start()
        return f"ready in {time.monotonic() - started:.1f} s"

    def revive(self) -> None:
        """Start again what has died, at the same address."""
        for service in self._private:
            if not service.running:
                self._say("", f"{service.name} ended and is started again", "")
                service.start()

    def stop(self) -> None:
        for service in reversed(self._private):
            service.stop()
