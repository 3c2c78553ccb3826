"""What is wrong with how a page looks, as far as a program can tell."""

from typing import Final

from playwright.sync_api import Page

_FIND: Final = """() => {
    const found = [];
    const tell = (part, why) => found.push(`${why}: ${part.outerHTML.slice(0, 160)}`);
    const beyond = (box, frame) => box.right > frame.right + 1 || box.left < frame.left - 1;
    const above = part => {
        const all = [];
        for (let at = part; at && at !== document.body; at = at.parentElement) all.push([at, getComputedStyle(at)]);
        return all;
    };
    const unseen = part => part.closest(
        ".unseen, .skip, [hidden], dialog:not([open]), details:not([open]) > :not(summary), noscript, pre, option"
    ) !== null;
    const look = (part, box) => {
        const drawing = part.closest("svg");
        if (drawing) {
            const frame = drawing.getBoundingClientRect();
            const outside = box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
            if (beyond(box, frame) || outside) tell(part, "outside its drawing");
            return;
        }
        const parents = above(part);
        const scrolls = parents.some(([, style]) => /auto|scroll/.test(style.overflowX));
        if (beyond(box, {left: 0, right: innerWidth}) && !scrolls) tell(part, "outside the window");
        const frame = parents.find(([, style]) => /hidden|clip/.test(style.overflowX));
        if (frame && beyond(box, frame[0].getBoundingClientRect())) tell(part, "cut");
    };
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let text = words.nextNode(); text; text = words.nextNode()) {
        if (!text.data.trim() || unseen(text.parentElement)) continue;
        range.selectNodeContents(text);
        const box = range.getBoundingClientRect();
        if (box.width && box.height) look(text.parentElement, box);
    }
    const pen = document.createElement("canvas").getContext("2d");
    for (const part of document.querySelectorAll("input[placeholder]")) {
        if (unseen(part) || part.value) continue;
        const style = getComputedStyle(part);
        pen.font = style.font;
        const room = part.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        if (room > 0 && pen.measureText(part.placeholder).width > room + 1) tell(part, "its placeholder is cut");
    }
    for (const part of document.querySelectorAll(".scroll, .views ul")) {
        if (!unseen(part) && part.scrollWidth > part.clientWidth + 1) tell(part, "has to be scrolled sideways");
    }
    const width = document.documentElement.scrollWidth;
    if (width > innerWidth) found.push(`the page is ${width} wide`);
    return found;
}"""


def faults_of_looks(page: Page) -> list[str]:
    """Words that are cut or lie outside of the window or of their drawing, and what has to be scrolled sideways."""
    found: list[str] = page.evaluate(_FIND)
    return found
