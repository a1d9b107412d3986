"""A page as a browser would take it apart: its elements, its text, and what of it could act."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

_ADDRESSES = frozenset({"href", "src", "action", "hx-get", "hx-post", "formaction", "data", "srcdoc", "poster"})
_ACTING = frozenset({"iframe", "object", "embed", "base", "svg", "math", "style", "img", "video", "audio", "template"})


class Markup(HTMLParser):
    """`elements` are (name, attributes) in order; `text` is all text outside of them, as shown."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.comments: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def links(self, beginning: str = "") -> list[str]:
        """Every address of a link that begins so."""
        found = (attributes.get("href") or "" for tag, attributes in self.elements if tag == "a")
        return [href for href in found if href.startswith(beginning)]

    def attributes(self, name: str) -> list[str]:
        """The values of an attribute, wherever it stands."""
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]

    def dangers(self) -> list[str]:
        """Whatever in it could run, load or lead elsewhere, or restyle the page."""
        found = list(self.comments)
        for tag, attributes in self.elements:
            if tag in _ACTING:
                found.append(f"<{tag}>")
            for name, value in attributes.items():
                if name.startswith(("on", "hx-on")) or name in ("style", "hx-vals", "hx-headers"):
                    found.append(f"{tag} {name}={value}")
                if name in _ADDRESSES and not _is_ours(value or ""):
                    found.append(f"{tag} {name}={value}")
            if tag == "script" and not (attributes.get("src") or "").startswith("/static/"):
                found.append(f"<script {attributes}>")
        return found


def _is_ours(address: str) -> bool:
    parts = urlsplit(address)
    return not parts.scheme and not parts.netloc and address.startswith(("/", "#", "?")) and "\\" not in address
