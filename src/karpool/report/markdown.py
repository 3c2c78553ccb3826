"""Markdown for comments on pull requests. What came from a cluster or a file is text there, and nothing else.

Every character that Markdown, HTML or GitHub gives a meaning is escaped, so that a name cannot become a link, an image,
a mention, a heading or a new cell of a table. What is escaped is written as a character reference, which no
parser reads as markup again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from karpool.wire.problems import one_line

_MARKUP: Final = re.compile(
    r"[\\`*_{}\[\]<>#|~&@]"  # emphasis, code, links, HTML, headings, cells, mentions
    r"|\$(?!/(?:h|month)\b)"  # formulas; of prices, nothing is made
    r"|(?<=www)\.|:(?=//)"  # addresses
    r"|^[-+=]|^[0-9]+(?=[.)](?:\s|$))",  # lists and rules, at the beginning
    re.IGNORECASE,
)


def escaped(text: str) -> str:
    """Text that shows as it is, on one line."""
    return _MARKUP.sub(lambda match: "".join(f"&#{ord(char)};" for char in match[0]), one_line(text).strip())


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table of escaped cells; columns whose numbers are in `right` hold numbers."""
    rule = ["--:" if index in right else "---" for index in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def folded(summary: str, body: str) -> str:
    """A part that readers open when they want it."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
