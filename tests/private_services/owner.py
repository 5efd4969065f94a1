"""A program that owns one private service, and can be killed.

    python owner.py postgres FOLDER [BINARIES]
    python owner.py rabbitmq FOLDER

It writes one line of json when the service is ready, does what the lines of its input say (freeze, thaw), and
stops the service at the end of its input.
"""

import json
import sys
from pathlib import Path

from private_services import PrivatePostgres, PrivateRabbitMQ


def main(kind: str, folder: str, binaries: str | None = None) -> None:
    service: PrivatePostgres | PrivateRabbitMQ
    if kind == "postgres":
        service = PrivatePostgres(Path(folder), binaries=Path(binaries) if binaries else None)
    else:
        service = PrivateRabbitMQ(Path(folder))
    with service:
        tell(url=service.url)
        for line in sys.stdin:
            getattr(service, line.strip())()
            tell(done=line.strip())
    tell(running=service.running)


def tell(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
