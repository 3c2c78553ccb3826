"""Programs that the permissions of files hold, whoever runs the tests."""

import os
import shutil
from typing import Final

import pytest

# Root that loses these capabilities is held by the permissions of files like everybody else.
_SETPRIV: Final = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


def unprivileged() -> tuple[str, ...]:
    """What to put before a command, so that it may read and write no more than permissions say."""
    if os.geteuid() != 0:
        return ()
    if shutil.which(_SETPRIV[0]) is None:
        pytest.skip(
            "NOT TESTED: files without permission; root may use them all, and there is no setpriv to change that"
        )
    return _SETPRIV
