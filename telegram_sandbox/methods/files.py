"""getFile: where a file can be downloaded."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.errors import bad_request
from telegram_sandbox.files import LARGEST_DOWNLOAD
from telegram_sandbox.methods.call import Call, method


@method("getFile")
def get_file(call: Call) -> Any:
    facts = call.world.files.get(call.parameters.text("file_id"))
    if facts is None:
        raise bad_request("invalid file_id")
    if facts["size"] > LARGEST_DOWNLOAD:
        raise bad_request("file is too big")
    return {
        "file_id": facts["id"],
        "file_unique_id": facts["unique"],
        "file_size": facts["size"],
        "file_path": facts["path"],
    }
