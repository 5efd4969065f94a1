"""What works on this system, in words."""

import sys

from private_services.errors import ServiceError
from private_services.postgres_binaries import find_binaries
from private_services.rabbitmq_installation import rabbitmq_scripts, why_not_usable


def supported() -> str:
    """One line for a person."""
    if sys.platform == "linux":
        ending = "Linux: the kernel ends the services when their owner ends"
    elif sys.platform == "darwin":
        ending = "macOS (not tested): a watcher process ends the services when their owner ends"
    else:
        return f"{sys.platform}: not supported; use Linux, macOS or WSL"
    return f"{ending}; {_postgres()}; {_rabbitmq()}"


def _postgres() -> str:
    try:
        binaries = find_binaries()
    except ServiceError as error:
        return str(error)
    return f"PostgreSQL {binaries.major} in {binaries.folder}"


def _rabbitmq() -> str:
    return why_not_usable() or f"RabbitMQ in {rabbitmq_scripts()}"
