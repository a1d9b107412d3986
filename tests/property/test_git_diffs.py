"""Whatever git prints of two states of a folder is read as what happened to each file, or refused."""

from __future__ import annotations

import os
import subprocess

import pytest
from dulwich.index import commit_tree
from dulwich.objects import Blob
from dulwich.repo import Repo
from hypothesis import given
from hypothesis import strategies as st

from daemon.records import blob_id
from daemon.transcript.evidence.unified_diffs import changes, patched

_TEXT = st.lists(
    st.sampled_from(["a", "b", "", " ", "\t", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "diff --git a/x b/x", "\r"])
)
_CONTENT = st.one_of(
    st.builds(lambda lines, end: "\n".join(lines).encode() + end, _TEXT, st.sampled_from([b"", b"\n"])),
    st.binary(max_size=40),
)
_NAMES = st.sampled_from(["x", "a b", "tab\there", 'quo"te', "über", "deep/x", "deep/er/y", " lead", "a/b/c"])
_STATE = st.dictionaries(_NAMES, _CONTENT, max_size=5)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    return Repo.init_bare(tmp_path_factory.mktemp("repo"))


def _tree(repo: Repo, state: dict[str, bytes]) -> str:
    blobs = {name: Blob.from_string(content) for name, content in state.items()}
    for blob in blobs.values():
        repo.object_store.add_object(blob)
    entries = [(name.encode(), blob.id, 0o100644) for name, blob in blobs.items()]
    return commit_tree(repo.object_store, entries).decode()


def _diff(repo: Repo, before: dict[str, bytes], after: dict[str, bytes]) -> str:
    """As OpenCode keeps it: decoded, and without blank space at either end."""
    environment = {"PATH": os.environ["PATH"], "HOME": repo.path, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", repo.path, "diff", _tree(repo, before), _tree(repo, after)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace").strip()


@given(_STATE, _STATE)
def test_a_diff_of_two_trees_is_read_as_what_became_of_each_file(
    repo: Repo, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    read = changes(_diff(repo, before, after))
    assert read is not None
    assert read.keys() == {name for name in {*before, *after} if before.get(name) != after.get(name)}
    for name, change in read.items():
        assert change.is_gone == (name not in after)
        if change.is_gone:
            continue
        if not change.blob:  # renamed as it was
            assert before[change.source] == after[name]
            continue
        assert blob_id(after[name]).startswith(change.blob)
        made = patched(before.get(change.source, b""), change.hunks)
        assert made == after[name] or made is None or not blob_id(made).startswith(change.blob)
