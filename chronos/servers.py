"""The servers of `chronos up`: the user's own where an address is set, else private ones, started and kept up.

Telegram is one of them: without a bot token it is the sandbox, which is on this machine.
"""

from __future__ import annotations

import os
import secrets
import string
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from chronos import redaction
from chronos.config import Settings
from chronos.errors import BadInput
from chronos.invocation import short
from private_services import PrivatePostgres, PrivateRabbitMQ
from private_services.ports import is_free
from private_services.service import PrivateService
from telegram_sandbox.process import SandboxProcess

#: Where the sandbox's page is looked for first.
SANDBOX_PORT = 8081
#: The bot that talks to the sandbox.
SANDBOX_BOT, SANDBOX_BOT_NAME = 1000000001, "chronos_sandbox_bot"

#: (part, state, more), or ("", words, ""): how `up` tells what happens.
Say = Callable[[str, str, str], None]


class Servers:
    def __init__(self, configuration: Settings, say: Say) -> None:
        self._configuration, self._say = configuration, say
        self._private: list[PrivateService] = []
        self.sandbox: SandboxProcess | None = None

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
        if configuration.bot_token is None:
            self._start_sandbox()
        if configuration.bot_token is not None:
            addresses["CHRONOS_BOT_TOKEN"] = configuration.bot_token.get_secret_value()
        if configuration.telegram_url is not None:
            addresses["CHRONOS_TELEGRAM_URL"] = configuration.telegram_url
        return addresses

    def _start_sandbox(self) -> None:
        """With the same bot, and if it can be at the same address, as the last time."""
        folder, wanted = self._configuration.data_dir / "sandbox", self._configuration.sandbox_port
        if wanted is not None and not is_free(wanted):
            raise BadInput(
                f"port {wanted} is used by another program: set CHRONOS_SANDBOX_PORT to another one, or to nothing"
            )
        first = not folder.exists() and wanted is None and is_free(SANDBOX_PORT)
        self.sandbox = SandboxProcess(folder, SANDBOX_PORT if first else wanted)
        took = self._start(self.sandbox)
        self.sandbox.client.bot(SANDBOX_BOT, name="Chronos", username=SANDBOX_BOT_NAME)
        self._configuration.bot_token = SecretStr(_token_of(folder))
        self._configuration.telegram_url = self.sandbox.url
        self._say("Telegram sandbox", took, "no account needed; CHRONOS_BOT_TOKEN=... for the real one")

    def _start(self, service: PrivateService) -> str:
        started = time.monotonic()
        self._private.append(service)
        service.start()
        return f"ready in {time.monotonic() - started:.1f} s"

    def revive(self) -> bool:
        """Start again what has died, at the same address; whether there was anything."""
        dead = [service for service in self._private if not service.running]
        for service in dead:
            self._say("", f"{service.name} ended and is started again", "")
            service.start()
        return bool(dead)

    def stop(self) -> None:
        for service in reversed(self._private):
            service.stop()


def _token_of(folder: Path) -> str:
    """Of the form that Telegram's have, made once: nobody but this sandbox knows it."""
    file = folder / "bot_token"
    try:
        token = file.read_text().strip()
    except FileNotFoundError:
        letters = string.ascii_letters + string.digits
        token = f"{SANDBOX_BOT}:{''.join(secrets.choice(letters) for _ in range(35))}"
        fresh = file.with_suffix(".new")
        with open(fresh, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as new:
            new.write(token)
        fresh.replace(file)
    redaction.hide(token)
    return token
