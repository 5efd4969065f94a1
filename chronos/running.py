"""One `chronos up` per data folder, and where it tells every other command which servers it runs on.

The lock says whether it lives, however it ended: what a killed one had written is not believed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from chronos.config import Settings
from chronos.errors import BadInput

#: Seconds; another command holds the lock for a moment while it looks whether somebody has it.
PATIENCE = 0.5


def environment_file(folder: Path) -> Path:
    """Holds passwords: mode 0600. In the form of a .env file, so that people can use it as one."""
    return folder / "running.env"


def _lock_file(folder: Path) -> Path:
    return folder / "up.lock"


@contextmanager
def the_only_one(folder: Path) -> Iterator[None]:
    """Hold the folder; BadInput when another `chronos up` has it. Released with the process, even by kill -9."""
    lock = os.open(_lock_file(folder), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        ends = time.monotonic() + PATIENCE
        while not _taken(lock, fcntl.LOCK_EX):
            if time.monotonic() > ends:
                owner = os.read(lock, 20).decode("ascii", "replace").strip()
                raise BadInput(
                    f"another `chronos up` (process {owner}) runs in {folder}: stop it first,"
                    " or set CHRONOS_DATA_DIR to another folder"
                )
            time.sleep(0.02)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
        environment_file(folder).unlink(missing_ok=True)
        try:
            yield
        finally:
            environment_file(folder).unlink(missing_ok=True)
    finally:
        os.close(lock)


def tell(folder: Path, values: Mapping[str, str]) -> None:
    fresh = environment_file(folder).with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(fresh, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())
    fresh.replace(environment_file(folder))


def told(folder: Path) -> dict[str, str]:
    """What the living `chronos up` of this folder told; empty when there is none."""
    try:
        lock = os.open(_lock_file(folder), os.O_RDONLY)
    except OSError:
        return {}
    try:
        if _taken(lock, fcntl.LOCK_SH):
            return {}
    finally:
        os.close(lock)
    try:
        lines = environment_file(folder).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadInput(f"cannot read {environment_file(folder)}: {error.strerror}") from None
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _taken(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


#: What `chronos up` tells, and the setting that it is.
_TOLD = {
    "CHRONOS_DATABASE_URL": "database_url",
    "CHRONOS_AMQP_URL": "amqp_url",
    "CHRONOS_BOT_TOKEN": "bot_token",
    "CHRONOS_TELEGRAM_URL": "telegram_url",
}


def completed(configuration: Settings) -> Settings:
    """The settings, with those of the running `chronos up` where no database was named."""
    if configuration.database_url is not None:
        return configuration
    values = told(configuration.data_dir)
    # By way of a second object, so that what was told is checked, and kept secret, like any other setting.
    found = {field: values[name] for name, field in _TOLD.items() if name in values}
    checked = Settings(**found) if found else configuration  # type: ignore[arg-type]
    return configuration.model_copy(
        update={field: getattr(checked, field) for field in found if getattr(configuration, field) is None}
    )
