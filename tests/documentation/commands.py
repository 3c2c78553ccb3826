"""The commands that README, CONTRIBUTING and docs show: lines of blocks, and whole ones in sentences."""

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_PROGRAMS: Final = (
    r"karpool|kubectl|helm|make|python3?|scripts/[\w-]+|\.venv/bin/\w+|pip|pipx|uvx?|source|docker|promtool|"
    r"cat|echo|git|jq|man|curl|envsubst|export|sudo|apt|apt-get|brew|krew|podman|sh|bash"
)
_VARIABLE: Final = re.compile(r"[A-Z][A-Z_]*=.*", re.DOTALL)
_VARIABLES: Final = r"(?:[A-Z][A-Z_]*=\S+ )*"
_COMMAND: Final = re.compile(rf"^\s*{_VARIABLES}(?:{_PROGRAMS})(?:\s|$)(?! =)")
_INDENT: Final = 4
_COMMENT: Final = re.compile(r"\s+#\s.*$")
_INLINE: Final = re.compile(r"`((?:kubectl )?karpool [^`]+)`")
_IN_A_SENTENCE: Final = re.compile(
    r"`((?:kubectl (?:-n \S+ )?(?:apply|annotate|create|delete|describe|get|patch) (?!-o)"
    r"|pip install |(?:PYTHONPATH=\S+ )?python (?:-m |benchmarks/)|make \w|uv python )[^`]*)`"
)
"""What somebody could type as it is; `kubectl get -o json` only names a form."""


class Command(NamedTuple):
    page: str
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        """Of its first part, up to a pipe or a redirection; without variables before it."""
        found: list[str] = []
        for word in _split(self.text):
            if word and set(word) <= set("|<>;&"):
                break
            found.append(word)
        return list(dropwhile(_VARIABLE.fullmatch, found))

    @property
    def variables(self) -> dict[str, str]:
        """Those before it."""
        return dict(word.split("=", 1) for word in takewhile(_VARIABLE.fullmatch, _split(self.text)))

    @property
    def plain(self) -> bool:
        """Whether it is one program and its arguments: nothing that a shell has to do."""
        return all(not set(word) <= set("|<>;&()") for word in _split(self.text)) and self.words[0] == "karpool"


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def shown() -> Iterator[Command]:
    """The commands of all pages, in their order; those over several lines are joined."""
    for page in PAGES:
        if page.exists():
            yield from _of_page(str(page.relative_to(ROOT)), page.read_text().splitlines())


def _of_page(page: str, lines: list[str]) -> Iterator[Command]:
    fence, number = "", 0
    while number < len(lines):
        line = lines[number]
        start = number
        number += 1
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip("` ") or "text"
            continue
        if not fence:
            yield from (Command(page, start + 1, text) for text in _IN_A_SENTENCE.findall(line))
        in_shell = fence in {"sh", "console", "bash"}
        in_block = not fence and len(line) - len(line.lstrip()) >= _INDENT
        if not (
            (in_shell and line.strip() and not line.lstrip().startswith("#")) or (in_block and _COMMAND.match(line))
        ):
            continue
        text = line.strip()
        while text.endswith("\\") or _is_open(text):
            text = f"{text.removesuffix(chr(92)).rstrip()} {lines[number].strip()}"
            number += 1
        yield Command(page, start + 1, _COMMENT.sub("", text))


def unlabelled() -> Iterator[Command]:
    """Lines of fences without a language that look like commands, which nothing executes."""
    for page in PAGES:
        if page.exists() and page.parent.name != "reference":
            fence = ""
            for number, line in enumerate(page.read_text().splitlines(), 1):
                if line.lstrip().startswith("```"):
                    fence = "" if fence else line.strip("` ") or "text"
                elif fence == "text" and re.match(r"\s*(?:\$ )?(?:karpool|kubectl|helm)\s", line):
                    yield Command(str(page.relative_to(ROOT)), number, line.strip())


def _is_open(text: str) -> bool:
    try:
        _split(_COMMENT.sub("", text))
    except ValueError:
        return True
    return False


def mentioned() -> Iterator[Command]:
    """Commands within sentences of people: their options must be there, but names stand for anything."""
    for page in PAGES:
        if page.exists() and page.parent.name != "reference":
            name = str(page.relative_to(ROOT))
            for number, line in enumerate(page.read_text().splitlines(), 1):
                yield from (Command(name, number, text) for text in _INLINE.findall(line))


def shown_after(command: Command) -> list[str]:
    """What a page of quick starts shows of the output: lines of the block that follows the command."""
    if command.page != "docs/quick-starts.md":
        return []
    rest = (ROOT / command.page).read_text().splitlines()[command.line :]
    rest = list(dropwhile(lambda line: not line.strip(), rest))
    if not rest or rest[0] != "```":
        return []
    return [" ".join(line.split()) for line in takewhile(lambda line: line != "```", rest[1:])]
