"""An HTML page as its elements, and what of it could do something that its page did not mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_ADDRESSES = ("href", "src", "action", "formaction", "hx-get", "hx-post")


@dataclass(frozen=True)
class Element:
    """A start tag."""

    name: str
    attributes: dict[str, str]


@dataclass
class Page:
    """Elements in order, and all text outside of them."""

    elements: list[Element] = field(default_factory=list)
    text: str = ""

    def named(self, name: str) -> list[Element]:
        return [element for element in self.elements if element.name == name]

    def with_attribute(self, name: str) -> list[str]:
        """The values of one attribute, in order."""
        return [element.attributes[name] for element in self.elements if name in element.attributes]

    def harms(self) -> list[Element]:
        """Elements that run something, load something from elsewhere, or lead elsewhere."""
        return [element for element in self.elements if _does_harm(element)]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.page.text += data


def parsed(html: str) -> Page:
    """The page that a browser would read."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


def _does_harm(element: Element) -> bool:
    if element.name in ("iframe", "object", "embed", "img", "svg", "style", "base", "video", "audio", "frame", "math"):
        return True
    if element.name == "script" and not element.attributes.get("src", "").startswith("/static/"):
        return True
    for name, value in element.attributes.items():
        if name.startswith("on") or name in ("style", "srcdoc", "hx-on", "ping", "srcset", "background"):
            return True
        if name in _ADDRESSES and (not value.startswith(("/", "#", "?")) or value.startswith(("//", "/\\"))):
            return True
    return False
