"""Pages and exports are inert in four renderers, not only in the one that the other tests parse with (T1)."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from daemon.exports import Export
from daemon.exports.stream import export
from daemon.reconstitute.pages.index import index
from daemon.reconstitute.pages.render import Renderer
from tests.hostile.renderers import rendered
from tests.unit.found_out import file, hostile, pages
from tests.unit.markup import PAYLOADS
from tests.unit.recorded_sessions import call, recorded
from tests.unit.session_tree import hostile_session, tree

RENDERERS = ("markdown-it", "cmark-gfm", "marked", "remark")
BEACON = "https://evil.example/"
STRUCTURE = {
    "html", "head", "body", "p", "h1", "h2", "h3", "h4", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
    "code", "pre", "blockquote", "br", "details", "summary", "strong", "a", "hr",
}  # fmt: skip
"""All that our own Markdown makes. No emphasis, image, task list, footnote or HTML: only a payload could bring those."""
COUNTED = {"h1", "h2", "h3", "h4", "h6", "table", "tr", "li", "pre", "blockquote", "hr", "details"}


class Page(HTMLParser):
    """The tags, attributes and links of a rendered page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]

    def handle_comment(self, data: str) -> None:
        self.tags.append("!--")

    def handle_decl(self, decl: str) -> None:
        self.tags.append("!")

    def handle_pi(self, data: str) -> None:
        self.tags.append("?")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page with each payload in every place a text can stand, and an export of a session with them all."""
    made: dict[str, str] = {}
    for number, payload in enumerate(PAYLOADS):
        name = payload.replace("/", "_").replace("\0", "")
        material = hostile(payload)
        material = replace(material, files=(*material.files, file(f"odd/{name}"), file(f"odd/{name}!", b"x\n")))
        made |= {f"{number}/{path}": text for path, text in pages(material).items()}
        entry = Renderer(material, 10).entry("home/dev/shop")
        made[f"{number}/index"] = index([replace(entry, title=payload, summary=payload)]).content
    with recorded(tmp_path_factory.mktemp("export")) as house:
        for number, payload in enumerate(PAYLOADS):
            sid = house.session(f"ses_{number}", f"/w/{payload}", payload)
            house.say(sid, "user", payload)
            house.say(sid, "assistant", payload, call("bash", output=payload, command=payload), payload)
        pieces: list[str] = []
        for number, payload in enumerate(PAYLOADS):
            told = hostile_session(house, f"ses_told_{number}", payload)
            made |= {f"{number}/told/{page.path}": page.text for page in tree(house, told)}
        export(house.archive, Export(format="markdown", results="full"), pieces.append, lambda _: None)
        made["export"] = "".join(pieces)
    return made


@pytest.fixture(scope="module")
def seen(texts: dict[str, str]) -> dict[str, dict[str, Page]]:
    """By renderer and text."""
    made = rendered(list(texts.values()))
    return {name: dict(zip(texts, map(Page, made[name]), strict=True)) for name in RENDERERS}


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_but_our_own_structure_is_rendered(seen: dict[str, dict[str, Page]], renderer: str) -> None:
    for name, page in seen[renderer].items():
        assert set(page.tags) <= STRUCTURE, (name, set(page.tags) - STRUCTURE)
        assert page.attributes <= {"href", "class", "align", "style", "start", "lang"}, (name, page.attributes)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_every_link_leads_to_a_page_of_the_tree(
    seen: dict[str, dict[str, Page]], texts: dict[str, str], renderer: str
) -> None:
    for name, shown in seen[renderer].items():
        if name.endswith("/index"):
            assert shown.links == ["home/dev/shop/README.md"], name
            continue
        for href in shown.links:
            path, _, anchor = href.partition("#")
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
            assert page in texts, (name, href)
            assert not anchor or f"\n###### {anchor}\n" in texts[page], (name, href)


def test_all_renderers_see_the_same_structure(seen: dict[str, dict[str, Page]], texts: dict[str, str]) -> None:
    for name in texts:
        found = {renderer: [tag for tag in seen[renderer][name].tags if tag in COUNTED] for renderer in RENDERERS}
        assert len({tuple(tags) for tags in found.values()}) == 1, (name, found)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_these_checks_notice_an_active_text(renderer: str) -> None:
    """Each of these is active in every one of the four: the checks above are not blind to it."""
    active = [f"![x]({BEACON})", f"[x]({BEACON})", f'<img src="{BEACON}">', "*em*", f"wow![x]({BEACON})"]
    for html in rendered(active)[renderer]:
        page = Page(html)
        assert set(page.tags) - STRUCTURE or BEACON in page.links


def test_the_renderers_link_bare_addresses() -> None:
    """As GitHub does; otherwise the check of links could not fail for them."""
    found = {name: Page(pages[0]).links for name, pages in rendered(["see https://evil.example/ there"]).items()}
    assert {name: bool(links) for name, links in found.items()} == dict.fromkeys(RENDERERS, True)
