"""PostgreSQL and RabbitMQ of our own, for programs that run where nobody installed or set up a server.

    with PrivatePostgres(folder / "postgres") as postgres, PrivateRabbitMQ(folder / "rabbitmq") as rabbitmq:
        work_with(postgres.url, rabbitmq.url)

Each service is a child process with a folder of its own and ports of the loopback only. Its data outlive it;
it never outlives the process that started it, not even after kill -9. kill(), freeze() and thaw() are for
those who want to see what their program does when a server dies or hangs. MessageStore is for programs that
need no server at all: queues in the memory of the process that behave as RabbitMQ's do.

The package knows nothing of the programs that use it. Linux; macOS with the limits that supported() names.
"""

import sys

if sys.platform == "win32":
    # Otherwise Windows would be told that it has no module pwd.
    raise ImportError(f"{sys.platform}: not supported; use Linux, macOS or WSL")

from private_services.errors import ServiceError
from private_services.in_process import Delivery, Inbox, MessageStore
from private_services.platforms import supported
from private_services.ports import free_port
from private_services.postgres import PrivatePostgres
from private_services.rabbitmq import PrivateRabbitMQ
from private_services.rabbitmq_installation import install_rabbitmq

__all__ = [
    "Delivery",
    "Inbox",
    "MessageStore",
    "PrivatePostgres",
    "PrivateRabbitMQ",
    "ServiceError",
    "free_port",
    "install_rabbitmq",
    "supported",
]
