"""The user that a service runs as when we are root, for servers that refuse to run as root."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from private_services.errors import ServiceError


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """None when we are not root: then a service runs as we do."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise ServiceError("PostgreSQL does not run as root, and there is no user nobody to run it as") from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def may_enter(account: Account, folder: Path) -> bool:
    """By the rights of the folder and of all above it; access lists are not looked at."""
    for step in (folder, *folder.parents):
        rights = step.stat()
        if rights.st_uid == account.uid:
            needed = stat.S_IXUSR
        elif rights.st_gid == account.gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not rights.st_mode & needed:
            return False
    return True
