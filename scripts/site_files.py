"""A hook of MkDocs: the site needs no network. What pages link to in the repository outside docs is part of it."""

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
WORKER: Final = Path(__file__).with_name("site_worker.js")
_FETCHED: Final = "https://unpkg.com/iframe-worker/shim"
FOLDER: Final = "repository"
_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add each linked file, as text: a browser shows that and runs nothing of it."""
    linked = {
        target
        for page in Path(config.docs_dir).rglob("*.md")
        for target in _outside(page, page.read_text(encoding="utf-8"))
    }
    for target in sorted(linked):
        if (ROOT / target).is_file():
            text = (ROOT / target).read_text(encoding="utf-8")
            files.append(File.generated(config, f"{FOLDER}/{target}.txt", content=text))
    files.append(File.generated(config, f"assets/{WORKER.name}", abs_src_path=str(WORKER)))
    return files


def on_post_template(output_content: str, **_: object) -> str:
    return output_content.replace(_FETCHED, f"assets/{WORKER.name}")


def on_post_page(output: str, page: Page, **_: object) -> str:
    """The theme's plugin for pages that are opened as files fetches a script; ours is part of the site."""
    return output.replace(_FETCHED, f"{'../' * page.file.src_uri.count('/')}assets/{WORKER.name}")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to such files lead to the copies; those to folders become plain words."""
    source = Path(config.docs_dir) / page.file.src_uri
    up = "../" * page.file.src_uri.count("/")

    def link(found: re.Match[str]) -> str:
        target = _target(source, found[2])
        if target is None:
            return found[0]
        if files.get_file_from_path(f"{FOLDER}/{target}.txt") is None:
            return found[1]
        return f"[{found[1]}]({up}{FOLDER}/{target}.txt)"

    return _LINK.sub(link, markdown)


def _outside(page: Path, text: str) -> set[str]:
    found = (_target(page, link[2]) for link in _LINK.finditer(text))
    return {target for target in found if target is not None}


def _target(page: Path, link: str) -> str | None:
    """The path from the root of the repository, None for a file within docs."""
    path = (page.parent / link).resolve()
    if path.is_relative_to(ROOT / "docs") or not path.is_relative_to(ROOT):
        return None
    return str(path.relative_to(ROOT))
