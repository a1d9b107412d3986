"""Pages of every kind and exports are inert in four renderers, not only in the one that the other tests parse with (T1)."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

import pytest

from daemon.exports import Export
from daemon.exports.formats import export
from tests.hostile.every_page import KINDS, entries, facts, struck, trees
from tests.hostile.rendered_page import COUNTED, STRUCK, STRUCTURE, Page, faults
from tests.hostile.renderers import RENDERERS, rendered
from tests.support.pages.markup import PAYLOADS
from tests.support.stores.recorded_sessions import call, recorded

BEACON = "https://evil.example/"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page with each payload in every place a text can stand, and an export of a session with them all."""
    made: dict[str, str] = {}
    with recorded(tmp_path_factory.mktemp("export")) as house:
        for number, payload in enumerate(PAYLOADS):
            sid = house.session(f"ses_{number}", f"/w/{payload}", payload)
            house.say(sid, "user", payload)
            house.say(sid, "assistant", payload, call("bash", output=payload, command=payload), payload)
        pieces: list[str] = []
        export(house.archive, Export(format="markdown", results="full"), pieces.append, lambda _: None)
        made["export"] = "".join(pieces)
        for number, payload in enumerate(PAYLOADS):
            made |= {f"{number}/{path}": text for path, text in trees(payload, house, number).items()}
    return made


@pytest.fixture(scope="module")
def seen(texts: dict[str, str]) -> dict[str, dict[str, Page]]:
    """By renderer and text."""
    made = rendered(list(texts.values()))
    return {name: dict(zip(texts, map(Page, made[name]), strict=True)) for name in RENDERERS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_page_has_each_payload(texts: dict[str, str], kind: str) -> None:
    """The checks below look at pages of this kind, and those have more on them than pages without a text of others."""
    for number, _ in enumerate(PAYLOADS):
        prefix = f"{number}/"
        assert [name for name in texts if name.startswith(prefix) and KINDS[kind](name.removeprefix(prefix))]


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nothing_but_our_own_structure_is_rendered(
    seen: dict[str, dict[str, Page]], texts: dict[str, str], renderer: str
) -> None:
    for name, page in seen[renderer].items():
        assert faults(page, texts[name], renderer) == [], name


@pytest.mark.parametrize("renderer", RENDERERS)
def test_every_link_leads_to_a_page_of_the_tree(
    seen: dict[str, dict[str, Page]], texts: dict[str, str], renderer: str
) -> None:
    for name, shown in seen[renderer].items():
        for href in shown.links:
            path, _, anchor = href.partition("#")
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
            assert page in texts, (name, href)
            assert not anchor or f"\n###### {anchor}\n" in texts[page], (name, href)


def test_all_renderers_see_the_same_structure(seen: dict[str, dict[str, Page]], texts: dict[str, str]) -> None:
    for name in texts:
        found = {renderer: [tag for tag in seen[renderer][name].tags if tag in COUNTED] for renderer in RENDERERS}
        assert len({tuple(tags) for tags in found.values()}) == 1, (name, found)


def test_every_struck_fact_is_struck_through_and_stays_in_all_renderers() -> None:
    plain = Page(rendered([struck("plain words")])["cmark-gfm"][0])
    expected = [tag for tag in plain.tags if tag in COUNTED]
    pages = [struck(payload) for payload in PAYLOADS]
    for renderer, made in rendered(pages).items():
        for payload, text, html in zip(PAYLOADS, pages, made, strict=True):
            page = Page(html)
            assert sum(tag in STRUCK for tag in page.tags) == plain.tags.count("del"), (renderer, payload)
            assert faults(page, text, renderer, STRUCK) == [], (renderer, payload)
            assert [tag for tag in page.tags if tag in COUNTED] == expected, (renderer, payload)
    assert plain.tags.count("del") == len(entries(facts("plain words")))


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
