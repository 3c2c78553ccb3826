"""What a shell offers for the value of an option: words that there are, and files."""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completed = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def files(_context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Whatever the shell finds: it knows files better than we do."""
    return [CompletionItem(begun, type="file")]


def words_or_files(words: Iterable[str]) -> Completed:
    """The words that begin like this, and files where none does."""
    known = tuple(words)

    def completed(context: click.Context, param: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in known if word.startswith(begun)] or files(context, param, begun)

    return completed
