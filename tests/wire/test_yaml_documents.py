"""YAML as kubectl reads it."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karpool.wire.yaml_documents import YamlError, placed_yaml_documents, yaml_documents

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("abcyn01:-. #\n'é", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(values, max_size=3))
def test_what_a_yaml_writer_writes_is_read_back(documents: list[Any]) -> None:
    text = yaml.safe_dump_all(documents, allow_unicode=True)
    assert list(yaml_documents(text.encode())) == documents


def test_each_document_knows_the_line_where_its_value_begins() -> None:
    text = "# first\n\na: 1\n---\n# none\n---\n\n# second\n- b\n--- c\n"
    assert list(placed_yaml_documents(text.encode())) == [({"a": 1}, 3), (None, 6), (["b"], 9), ("c", 10)]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("", None),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01", "2024-01-01"),
        ("0777", 511),
        ("0x1F", 31),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("12:30", "12:30"),
        ("100m", "100m"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("|\n  two\n  lines", "two\nlines\n"),
    ],
)
def test_a_scalar_means_what_it_means_to_kubectl(scalar: str, value: object) -> None:
    assert list(yaml_documents(f"key: {scalar}\n".encode())) == [{"key": value}]


def test_keys_become_text() -> None:
    assert list(yaml_documents(b"1: a\ntrue: b\n")) == [{"1": "a", "true": "b"}]


def test_anchors_and_merges_are_resolved() -> None:
    text = b"base: &base {a: 1, b: 2}\nuse: *base\nmerged:\n  <<: *base\n  b: 3\n"
    assert list(yaml_documents(text)) == [
        {"base": {"a": 1, "b": 2}, "use": {"a": 1, "b": 2}, "merged": {"a": 1, "b": 3}}
    ]


def bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a:\n\t- b\n", "line 2, column 1: .*spaces, not tabs"),
        (b"a: 1\n\tb: 2\n", "line 2, column 1: .*spaces, not tabs"),
        (b"a: 1\n  b: 2\n", "line 2, column 4: mapping values are not allowed .*indentation"),
        (b"a: 1\na: 2\n", "line 2: the key 'a' appears twice"),
        (b"a: [1, 2\n", "did not find expected ',' or ']'"),
        (b"a: *nobody\n", "alias .nobody refers to no anchor"),
        (b"a: &a [*a]\n", "alias .a refers to no anchor"),
        (b"[1]: 2\n", "a key is a mapping or a list"),
        (b"~: 2\n", "a key is empty or null"),
        (b"a: !!binary aGk=\n", "binary values"),
        (b"<<: 5\n", "needs a mapping to merge"),
        (b"a: \x01\n", "control characters are not allowed"),
        (b"- " * 3000 + b"x", "nested more than 200 levels"),
        (bomb(), "aliases expand to more than 64 MiB"),
        (b"a: &a " + b"x" * 10**6 + b"\nb: [" + b", ".join([b"*a"] * 100) + b"]\n", "aliases expand to more than"),
        (b"x" * (17 * 2**20), "line 1 is longer than 16 MiB"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(text: bytes, message: str) -> None:
    with pytest.raises(YamlError, match=message):
        list(yaml_documents(text))


def test_documents_before_a_bad_one_are_read() -> None:
    stream = yaml_documents(b"a: 1\n---\nb: [\n---\n")
    assert next(stream) == {"a": 1}
    with pytest.raises(YamlError):
        next(stream)
