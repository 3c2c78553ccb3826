"""Files, directories and standard input, plain and compressed."""

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from karpool.wire import sources
from karpool.wire.problems import InputError
from karpool.wire.sources import ManifestSource, find_sources, read_source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = '{"kind": "Namespace", "metadata": {"name": "café"}}'.encode()


def read(data: bytes) -> bytes:
    return read_source(ManifestSource("-"), io.BytesIO(data))


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        gzip.compress(TEXT, mtime=0),
        gzip.compress(TEXT[:10], mtime=0) + gzip.compress(TEXT[10:], mtime=0),
        zstd.compress(TEXT),
        b"\xef\xbb\xbf" + TEXT,
        TEXT.decode().encode("utf-16"),
        b"\xfe\xff" + TEXT.decode().encode("utf-16-be"),
    ],
    ids=["plain", "gzip", "gzip-members", "zstd", "byte-order-mark", "utf-16", "utf-16-be"],
)
def test_text_comes_out_as_utf_8_however_it_was_packed(data: bytes) -> None:
    assert read(data) == TEXT


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT, mtime=0)[:-9], "gzip data is cut short"),
        (gzip.compress(TEXT, mtime=0) + b"junk", "gzip data is damaged"),
        (gzip.compress(TEXT, mtime=0)[:10] + b"\xff" * 40, "gzip data is damaged"),
        (zstd.compress(TEXT)[:-3], "zstd data is cut short"),
        (zstd.compress(TEXT)[:6] + b"\xff" * 40, "zstd data is damaged"),
        (gzip.compress(b"\x7fELF\0\0", mtime=0), "is a binary file"),
        (b"\x7fELF\0\0", "is a binary file"),
        (b"kind: \xff\n", "is not UTF-8 text .byte 0xff at offset 6."),
        (b"x" * (2**20 - 1) + "é".encode()[:1] + b"x", "offset 1048575"),
        (b"\xff\xfea", "is not valid UTF-16"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"standard input: .*{message}"):
        read(data)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_decompression_bomb_is_refused_in_one_sentence(pack: Callable[[bytes], bytes]) -> None:
    # Files that follow each other are one: 1 GiB of spaces in 1 MB of gzip.
    bomb = pack(b" " * 2**26) * 16
    with pytest.raises(
        InputError, match=r"^standard input: unpacks to more than 200 times its size, as .* unpack it first$"
    ):
        read(bomb)


def test_what_is_small_may_shrink_as_much_as_it_likes() -> None:
    assert read(gzip.compress(b" " * 2**22)) == b" " * 2**22


def test_more_than_the_largest_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_BYTES", 2**21)
    for data in (b" " * 2**22, gzip.compress(b" " * 2**22, mtime=0)):
        with pytest.raises(InputError, match=r"is larger than .* split it"):
            read(data)


def test_a_directory_gives_its_manifests_in_order_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.yaml", "a.JSON", "sub/c.yml.gz", "sub/d.json.zst", "notes.txt", ".git/e.yaml"):
        (tmp_path / name).write_bytes(b"{}")
    names = [Path(source.name).relative_to(tmp_path).as_posix() for source in find_sources([str(tmp_path)])]
    assert names == ["a.JSON", "b.yaml", "sub/c.yml.gz", "sub/d.json.zst"]


def test_a_directory_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no manifests; files must end in .json, .yaml, .yml"):
        list(find_sources([str(tmp_path)]))


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere.json", "does not exist"), ("/proc/self/mem", "cannot be read"), ("bad\0name", "cannot be read")],
)
def test_what_cannot_be_opened_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_source(ManifestSource(name), io.BytesIO())


def test_standard_input_is_read_once() -> None:
    with pytest.raises(InputError, match="only once"):
        list(find_sources(["-", "a.json", "-"]))
