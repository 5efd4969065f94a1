"""Files that bots and people sent: the bytes in the sandbox's folder, the facts in the world."""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from telegram_sandbox.errors import Json, bad_request, too_large
from telegram_sandbox.pictures import size_of, type_of
from telegram_sandbox.world import World

#: Bytes.
LARGEST_UPLOAD = 50 * 2**20
LARGEST_PHOTO = 10 * 2**20
LARGEST_DOWNLOAD = 20 * 2**20


@dataclass(frozen=True)
class Upload:
    name: str
    data: bytes
    type: str | None = None


class Files:
    def __init__(self, folder: Path, world: World) -> None:
        self.folder = folder / "files"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.world = world

    def save(self, kind: str, upload: Upload) -> Json:
        """kind: photo or document. The bytes are on disk before the world knows of them."""
        size = size_of(upload.data)
        if not upload.data:
            raise bad_request("file must be non-empty")
        if len(upload.data) > LARGEST_UPLOAD:
            raise too_large()
        if kind == "photo":
            if len(upload.data) > LARGEST_PHOTO:
                raise bad_request("file is too big")
            if size is None:
                raise bad_request("IMAGE_PROCESS_FAILED")
            if sum(size) > 10_000 or min(size) == 0 or max(size) > 20 * min(size):
                raise bad_request("PHOTO_INVALID_DIMENSIONS")
        number = self.world.next("files")
        name = re.sub(r'[\x00-\x1f/\\"]', "_", upload.name).strip(". ")[-200:] or "file"
        type_ = type_of(upload.data) if kind == "photo" else _type(name, upload.type)
        suffix = mimetypes.guess_extension(type_) if kind == "photo" else Path(name).suffix
        path = f"{kind}s/file_{number}{suffix or ''}"
        target = self.folder / path
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with open(target, "wb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(upload.data)
        facts: Json = {
            "id": ("AgACAgIAAxk" if kind == "photo" else "BQACAgIAAxk") + secrets.token_urlsafe(36),
            "unique": "AQAD" + secrets.token_urlsafe(9),
            "kind": kind,
            "path": path,
            "size": len(upload.data),
            "name": name,
            "type": type_,
            **({"width": size[0], "height": size[1]} if size else {}),
        }
        self.world.put(number, "last", "files")
        self.world.put(facts, "files", facts["id"])
        return facts

    def path_of(self, facts: Json) -> Path:
        return self.folder / str(facts["path"])

    def at(self, path: str) -> Json | None:
        """By the path that getFile gave; no other path of this machine can be asked for."""
        return next((facts for facts in self.world.files.values() if facts["path"] == path), None)


def as_content(facts: Json) -> Json:
    """The part of a message that shows the file."""
    common = {"file_id": facts["id"], "file_unique_id": facts["unique"], "file_size": facts["size"]}
    if facts["kind"] == "photo":
        return {"photo": [{**common, "width": facts["width"], "height": facts["height"]}]}
    return {"document": {"file_name": facts["name"], "mime_type": facts["type"], **common}}


def _type(name: str, given: str | None) -> str:
    guessed = mimetypes.guess_type(name)[0]
    return guessed or (given if given and re.fullmatch(r"[\w.+-]+/[\w.+-]+", given) else "application/octet-stream")
