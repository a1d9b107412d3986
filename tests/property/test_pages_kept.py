"""Whatever a person does on the pages of a tree, and whatever comes between, not a byte of theirs is lost."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from daemon.model import Page
from daemon.publish import MANIFEST, Published, publish, recover
from daemon.publish.edits import CLOSE, OPEN, own_notes, signature
from tests.support.examples import examples

TREE = "u/app"
KEYS = ("ses_1", "ses_2", "ses_3")
NAMES = ("s/a.md", "s/b.md", "s/c.md", "s/a.current.md")


class Crash(BaseException):
    pass


class Tree(RuleBasedStateMachine):
    """Runs with changed facts and renamed sessions, crashes at any step, and a person who writes, edits and deletes."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name)
        self.text = dict.fromkeys(["README.md", *KEYS], 0)
        self.names = dict(zip(KEYS, NAMES, strict=False))
        self.tokens: set[bytes] = set()  # what the person wrote and did not take away
        self.number = 0
        self.undo: dict[Path, bytes] = {}

    def teardown(self) -> None:
        self.place.cleanup()

    def pages(self) -> list[Page]:
        found = [("README.md", "README.md", "")]
        found += [(key, name, key) for key, name in self.names.items()]
        return [Page(name, partial(self.body, what), basis=self.body(what), key=key) for what, name, key in found]

    def body(self, what: str) -> str:
        return f"# {what}\n\nfact {self.text[what]}\n"

    def files(self) -> list[Path]:
        folder = self.root / TREE
        return sorted(p for p in folder.rglob("*.md") if p.is_file())

    def token(self) -> bytes:
        self.number += 1
        self.tokens.add(word := b"<word %d>" % self.number)
        return word

    def gone(self, data: bytes) -> None:
        self.tokens -= {word for word in self.tokens if word in data}

    @initialize()
    def begin(self) -> None:
        publish(self.root, TREE, self.pages(), spare_bytes=0)

    @rule(what=st.sampled_from(["README.md", *KEYS]))
    def facts_change(self, what: str) -> None:
        self.text[what] += 1

    @rule(names=st.permutations(NAMES), count=st.integers(1, 3))
    def sessions_change(self, names: list[str], count: int) -> None:
        """They are renamed, go and come back."""
        self.names = dict(zip(KEYS[:count], names, strict=False))

    @rule()
    def run(self) -> None:
        publish(self.root, TREE, self.pages(), spare_bytes=0)
        self.check_current(publish(self.root, TREE, self.pages(), spare_bytes=0))

    @rule(at=st.integers(0, 60))
    def crash(self, at: int) -> None:
        left = [at]

        def step(_: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Crash

        try:
            publish(self.root, TREE, self.pages(), spare_bytes=0, step=step)
        except Crash:
            pass

    @rule()
    def complete(self) -> None:
        recover(self.root)

    @rule(pick=st.integers(0, 20))
    def write_notes(self, pick: int) -> None:
        path = self.pick(pick)
        head, opening, rest = path.read_bytes().rpartition(OPEN)
        if opening and CLOSE in rest:
            path.write_bytes(head + opening + b"\n" + self.token() + b"\n" + rest)

    @rule(pick=st.integers(0, 20), where=st.sampled_from(["start", "end", "marks"]))
    def edit_elsewhere(self, pick: int, where: str) -> None:
        path = self.pick(pick)
        data = path.read_bytes()
        self.undo.setdefault(path, data)
        word = self.token()
        if where == "marks" and CLOSE in data:
            path.write_bytes(data.replace(CLOSE, word))
        else:
            path.write_bytes(word + data if where == "start" else data + word)

    @rule(pick=st.integers(0, 20))
    def take_an_edit_back(self, pick: int) -> None:
        if self.undo:
            path = sorted(self.undo)[pick % len(self.undo)]
            data = self.undo.pop(path)
            if path.exists():
                now = path.read_bytes()
                self.gone(now)
                self.tokens |= {word for word in self.words(data) if word in data}
                path.write_bytes(data)

    @rule(pick=st.integers(0, 20))
    def delete_a_page(self, pick: int) -> None:
        path = self.pick(pick)
        self.gone(path.read_bytes())
        path.unlink()
        self.forget_lost()

    def pick(self, number: int) -> Path:
        found = self.files()
        if not found:
            publish(self.root, TREE, self.pages(), spare_bytes=0)
            found = self.files()
        return found[number % len(found)]

    def words(self, data: bytes) -> set[bytes]:
        return {b"<word %d>" % number for number in range(1, self.number + 1) if b"<word %d>" % number in data}

    def forget_lost(self) -> None:
        """A word that stands in other places, too, was not deleted with this one."""
        everything = b"".join(path.read_bytes() for path in self.files())
        self.tokens |= self.words(everything)

    @invariant()
    def nothing_of_the_person_is_lost(self) -> None:
        staged = [p for p in (self.root / ".reconstitute.next").rglob("*") if p.is_file()]
        everything = b"".join(path.read_bytes() for path in [*self.files(), *staged])
        assert self.tokens <= self.words(everything)

    def check_current(self, done: Published) -> None:
        """After a run every page that is to be there can be read as it is now, or the name is a person's file's."""
        assert done.written == done.removed == []
        folder = self.root / TREE
        assert not (self.root / ".reconstitute.next").exists()
        assert (folder / MANIFEST).is_file()
        for what, name in [("README.md", "README.md"), *self.names.items()]:
            if name not in done.taken:
                data = (folder / done.current.get(name, name)).read_bytes()
                assert own_notes(data, {signature(self.body(what).encode())}) is not None, name


TestTree = Tree.TestCase
TestTree.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
