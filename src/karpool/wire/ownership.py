"""Whether a folder holds only what this user, or root, has put there.

As OpenSSH asks of its files: whoever can write the folder, a file in it or a folder above it decides what is read
from it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_WRITABLE_BY_GROUP = stat.S_IWGRP
_WRITABLE_BY_ALL = stat.S_IWOTH


def distrusted(folder: Path, uid: int | None = None) -> str | None:
    """Why somebody else may have written what is in a folder, in the name of this user; None: nobody else can.

    The folder need not exist yet; then those above it count.
    """
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid() if uid is None else uid
    try:
        real = Path(os.path.realpath(folder))
        return next(_objections(real, user), None)
    except OSError as error:
        return f"{error.filename} cannot be looked at: {error.strerror}"


def _objections(folder: Path, user: int) -> Iterator[str]:
    for above in folder.parents:
        if above.exists():
            yield from _objection(above, above.stat(), user, shared=True)
    if folder.exists():
        yield from _objection(folder, folder.stat(), user)
        with os.scandir(folder) as entries:
            for entry in entries:
                yield from _objection(Path(entry.path), entry.stat(follow_symlinks=False), user)


def _objection(path: Path, found: os.stat_result, user: int, *, shared: bool = False) -> Iterator[str]:
    """What is wrong with one path; in a shared folder with the sticky bit, as /tmp, others replace only their own."""
    if stat.S_ISLNK(found.st_mode):
        yield f"{path} is a link"
    elif found.st_uid not in (0, user):
        yield f"{path} belongs to user {found.st_uid}"
    elif shared and found.st_mode & stat.S_ISVTX:
        return
    elif found.st_mode & _WRITABLE_BY_ALL:
        yield f"everybody can write {path}"
    elif found.st_mode & _WRITABLE_BY_GROUP and not _is_private(found.st_gid, user):
        yield f"group {found.st_gid} can write {path}"


def _is_private(group: int, user: int) -> bool:
    """Whether nobody but this user is in a group, as in those that many systems make for each user."""
    import grp
    import pwd

    try:
        name, entry = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}
