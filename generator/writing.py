"""Writing a script to its place: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from generator.errors import Problem
from generator.source import PLAIN, is_plain


def check_target(path: str, force: bool) -> list[Problem]:
    """What stands in the way of writing ``path``; empty if nothing does."""
    flag = f"-o {path}" if path else "-o ''"
    if not path or not is_plain(path):
        reason = f"A file name is needed, {PLAIN}."
        return [Problem(flag, reason, {"script": "train.py"})]
    target = Path(path)
    if target.is_dir():
        inside = (target / "train.py").as_posix()
        return [Problem(flag, "It is a folder.", {"script": inside})]
    if target.exists() and not target.is_file():
        return []  # a device or pipe: written to, never replaced
    folder = target.resolve().parent
    if not folder.is_dir():
        reason = f"The folder {target.parent} does not exist."
        return [Problem(flag, reason, {"script": target.name})]
    if not os.access(folder, os.W_OK):
        reason = f"The folder {target.parent} cannot be written."
        return [Problem(flag, reason)]
    if target.exists() and not force:
        reason = (
            "The file exists; --force overwrites it, --dry-run shows what would change."
        )
        return [Problem(flag, reason, {"force": True})]
    return []


def write(path: str, text: str) -> None:
    """Write ``text``; an existing file stays as it was until the new one is complete.

    Raises:
        OSError: if it cannot be written. Nothing is then left behind.
    """
    target = Path(path)
    data = text.encode("utf-8")
    if target.exists() and not target.is_file():
        with open(target, "wb") as stream:
            stream.write(data)
        return
    target = target.resolve()  # replace what a link points to, not the link
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, else what the umask leaves."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
