"""A folder is trusted if nobody but its user, or root, can have written what is in it."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from karpool.wire.ownership import distrusted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "folder"
    made.mkdir(parents=True)
    (made / "kernel.nbi").write_bytes(b"")
    for path in (made.parent, made, made / "kernel.nbi"):
        path.chmod(0o755)
    return made


def give_away(path: Path, user: int, group: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: files of other users and groups; only root can make them")
    os.chown(path, user, group)


def test_what_only_its_user_can_write_is_trusted(folder: Path) -> None:
    assert distrusted(folder) is None


def test_a_folder_that_is_not_there_yet_is_as_good_as_those_above_it(folder: Path) -> None:
    assert distrusted(folder / "more" / "kernels") is None
    folder.chmod(0o777)
    assert distrusted(folder / "more" / "kernels") == f"everybody can write {folder}"


@pytest.mark.parametrize("path", ["", "kernel.nbi", ".."])
@pytest.mark.parametrize("mode", [0o757, 0o702])
def test_what_everybody_can_write_is_not_trusted_be_it_a_file_or_a_folder_above(
    folder: Path, path: str, mode: int
) -> None:
    (folder / path).chmod(mode)
    assert distrusted(folder) == f"everybody can write {Path(os.path.realpath(folder / path))}"


def test_what_a_group_can_write_is_not_trusted_unless_its_user_is_alone_in_it(folder: Path) -> None:
    give_away(folder, -1, 12345)
    folder.chmod(0o775)
    assert distrusted(folder) == f"group 12345 can write {folder}"
    give_away(folder, -1, pwd.getpwuid(os.geteuid()).pw_gid)
    assert distrusted(folder) is None


def test_a_shared_folder_above_with_the_sticky_bit_is_fine_and_as_the_folder_itself_is_not(folder: Path) -> None:
    folder.parent.chmod(0o777 | stat.S_ISVTX)
    assert distrusted(folder) is None
    folder.chmod(0o777 | stat.S_ISVTX)
    assert distrusted(folder) == f"everybody can write {folder}"


def test_what_belongs_to_another_user_is_not_trusted(folder: Path) -> None:
    give_away(folder / "kernel.nbi", 12345, -1)
    assert distrusted(folder) == f"{folder / 'kernel.nbi'} belongs to user 12345"
    assert distrusted(folder, uid=12345) is None, "what is root's is trusted by all"


def test_a_link_in_the_folder_is_not_trusted_and_one_to_it_is_followed(folder: Path, tmp_path: Path) -> None:
    way = tmp_path / "way"
    way.symlink_to(folder)
    assert distrusted(way) is None
    (folder / "kernel.nbc").symlink_to(folder / "kernel.nbi")
    assert distrusted(way) == f"{folder / 'kernel.nbc'} is a link"
