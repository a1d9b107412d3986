"""Writing stays beneath its root, never goes through a link, and is whole or not at all."""

from __future__ import annotations

import errno
import logging
import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import OutputRefused, Retry
from daemon.filesystem import components, disk_space
from daemon.filesystem.durable import Root, atomic_write, make_private_dir

HOSTILE = Path(__file__).parent.parent / "hostile"


def _expand(path: str) -> str:
    for unit in ("long", "é", "\U0001f600"):
        head, star, tail = path.partition(f"{unit}*")
        if star:
            count = "".join(c for c in tail.partition("/")[0].partition(".")[0] if c.isdigit())
            return head + unit[0] * int(count) + tail[len(count) :]
    return path


PATHS = [
    (_expand(row["path"]), row["refused"])
    for row in tomllib.loads((HOSTILE / "paths.toml").read_text(encoding="utf-8"))["path"]
]


def _everything(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in folder.rglob("*"):
        key = str(path.relative_to(folder))
        found[key] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


@pytest.fixture
def trap(tmp_path):
    """A root with planted links to a victim outside it, and the victim."""
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.mkdir()
    out.mkdir()
    (victim / "f").write_bytes(b"precious")
    (out / "link").symlink_to(victim)
    (out / "leaf").symlink_to(victim / "f")
    (out / "dangling").symlink_to(victim / "new")
    (out / "loop").symlink_to("loop")
    (out / "file").write_bytes(b"in the way")
    (out / "folder").mkdir()
    return out, victim


def test_there_are_sixty_hostile_paths():
    assert len(PATHS) >= 60


@pytest.mark.parametrize(("path", "refused"), PATHS)
def test_a_hostile_path_is_refused_or_stays_beneath_the_root(tmp_path, path, refused):
    with Root(tmp_path / "out") as root:
        if refused:
            with pytest.raises(OutputRefused):
                root.write(path, b"x")
        else:
            root.write(path, b"x")
            assert root.read(path) == b"x"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert all(not p.is_symlink() for p in (tmp_path / "out").rglob("*"))


@given(st.text(max_size=40))
def test_components_refuses_or_gives_plain_names_that_join_to_the_path(path):
    try:
        names = components(path)
    except OutputRefused:
        return
    assert "/".join(names) == path
    assert all(name not in {"", ".", ".."} and "/" not in name and len(os.fsencode(name)) <= 255 for name in names)


def test_a_lone_surrogate_is_refused():
    with pytest.raises(OutputRefused, match="not valid Unicode"):
        components("a/\udc80")


@pytest.mark.parametrize("path", ["link/f", "link/new", "link/a/b", "leaf/x", "dangling/x", "loop/x"])
def test_a_link_in_the_middle_is_never_followed(trap, path):
    out, victim = trap
    before = _everything(victim)
    with Root(out) as root:
        for act in (lambda: root.write(path, b"x"), lambda: root.read(path), lambda: root.remove(path)):
            with pytest.raises(OutputRefused, match="a link where a folder must be"):
                act()
        root.write("plain", b"x")
        with pytest.raises(OutputRefused):
            root.rename("plain", path)
    assert _everything(victim) == before


@pytest.mark.parametrize("path", ["leaf", "dangling", "loop", "link"])
def test_a_link_at_the_end_is_replaced_and_its_goal_untouched(trap, path):
    out, victim = trap
    before = _everything(victim)
    with Root(out) as root:
        with pytest.raises(OutputRefused, match="a link, not a regular file"):
            root.read(path)
        root.write(path, b"mine")
        assert root.read(path) == b"mine"
    assert not (out / path).is_symlink()
    assert _everything(victim) == before


def test_removing_a_link_removes_the_link(trap):
    out, victim = trap
    with Root(out) as root:
        root.remove("link")
        root.remove("nothing/there")
    assert not (out / "link").is_symlink()
    assert (victim / "f").read_bytes() == b"precious"


def test_a_file_in_place_of_a_folder_is_named_and_the_reverse(trap):
    """A folder where a file must be is named as well."""
    out, _ = trap
    with Root(out) as root:
        with pytest.raises(OutputRefused, match="'file' is a file or a link where a folder must be"):
            root.write("file/x", b"")
        with pytest.raises(OutputRefused, match="a folder is where a file must be"):
            root.write("folder", b"")
    assert [p.name for p in out.iterdir() if p.name.endswith(".tmp")] == []


def test_reading_never_blocks_on_a_pipe_or_a_socket(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server, Root(tmp_path) as root:
        server.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(OutputRefused, match="not a"):
                root.read(name)
        with pytest.raises(OutputRefused):
            root.read(".")


def test_reading_stops_at_the_limit_and_tells_nothing_from_something(tmp_path):
    with Root(tmp_path) as root:
        root.write("f", b"12345")
        assert root.read("f", 5) == b"12345"
        with pytest.raises(OutputRefused, match="larger than 4 bytes"):
            root.read("f", 4)
        assert root.read("g") is None
        assert root.read("no/such") is None
        assert root.stat("g") is None
        assert root.list("g") == []


def test_files_and_folders_are_private_and_never_executable(tmp_path):
    with Root(tmp_path / "new" / "out") as root:
        root.write("a/b", b"", 0o777)
        root.write("a/c", b"")
    modes = [(tmp_path / "new" / "out" / p).stat().st_mode & 0o777 for p in (".", "a", "a/b", "a/c")]
    assert modes[:2] == [0o700, 0o700]
    assert modes[2] & 0o111 == 0
    assert modes[3] == 0o600


def test_the_root_itself_may_be_a_link_but_not_a_file(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    with Root(tmp_path / "alias") as root:
        root.write("f", b"x")
    assert (tmp_path / "real" / "f").read_bytes() == b"x"
    for name in ("file", "file/below", "dangling"):
        with pytest.raises(OutputRefused, match="a file, or a link to nothing, is in the way"):
            Root(tmp_path / name)


@pytest.mark.parametrize("point", ["fsio.write", "fsio.sync", "fsio.rename"])
def test_a_failing_disk_leaves_the_old_file_and_no_rest(tmp_path, point):
    with Root(tmp_path) as root:
        root.write("f", b"old")

    def fail(at: str) -> None:
        if at == point:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Root(tmp_path, step=fail) as root, pytest.raises(OSError, match="Input/output"):
        root.write("f", b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"f": b"old"}


def test_a_file_too_large_for_the_disk_leaves_the_old_one(tmp_path):
    child = (
        "import resource, sys; from pathlib import Path; from daemon.filesystem.durable import Root\n"
        "with Root(Path(sys.argv[1])) as root:\n"
        "    root.write('f', b'old')\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "    try: root.write('f', b'n' * 5000)\n"
        "    except OSError as error: sys.exit(error.errno)\n"
    )
    ended = subprocess.run([sys.executable, "-c", child, str(tmp_path)], check=False, timeout=60)
    assert ended.returncode == errno.EFBIG
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"f": b"old"}


def test_a_filesystem_without_sync_is_reported_once_but_errors_are_raised(tmp_path, caplog):
    with Root(tmp_path) as root, caplog.at_level(logging.WARNING):
        reader, writer = os.pipe()
        root._sync(reader)  # EINVAL, as some network filesystems answer
        root._sync(writer)
        os.close(reader)
        os.close(writer)
        assert len(caplog.records) == 1
        assert "cannot sync" in caplog.text
        with pytest.raises(OSError, match="Bad file descriptor"):
            root._sync(reader)


def test_within_a_batch_each_folder_is_synced_once(tmp_path):
    points: list[str] = []
    with Root(tmp_path, step=points.append) as root:
        with root.batched():
            for n in range(10):
                root.write(f"a/{n}", b"x")
            inside = points.count("fsio.sync")
        assert inside == 10  # the files
        assert points.count("fsio.sync") == 12  # and the two folders
        root.write("a/0", b"y")
        assert points.count("fsio.sync") == 14


def test_renaming_replaces_makes_folders_and_reports_what_is_missing(tmp_path):
    with Root(tmp_path) as root:
        root.write("a/x", b"1")
        root.write("b", b"2")
        root.rename("a/x", "c/d/y")
        root.rename("c/d/y", "b")
        assert root.read("b") == b"1"
        assert root.list("a") == []
        with pytest.raises(FileNotFoundError):
            root.rename("nothing", "b")
        with pytest.raises(OutputRefused):
            root.rename("b", "../b")
        root.mkdir("e/f")
        root.remove("e/f")
        with pytest.raises(OSError, match="not empty"):
            root.remove("c")
        assert root.free_bytes() > 0
        assert root.list() == ["a", "b", "c", "e"]


def test_one_writer_waits_for_the_other(tmp_path):
    child = (
        "import sys; from pathlib import Path; from daemon.filesystem.durable import Root\n"
        "with Root(Path(sys.argv[1])) as root, root.locked():\n"
        "    print('in', flush=True); sys.stdin.readline(); root.write('child', b'')\n"
    )
    command = [sys.executable, "-c", child, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "in\n"
        other.stdin.write("go\n")
        other.stdin.flush()
        with Root(tmp_path) as root, root.locked():
            assert root.read("child") == b""


def test_a_single_file_of_ours_is_written_whole(tmp_path):
    atomic_write(tmp_path / "deep" / "config.toml", b"a = 1\n")
    atomic_write(tmp_path / "deep" / "config.toml", b"a = 2\n")
    assert (tmp_path / "deep" / "config.toml").read_bytes() == b"a = 2\n"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_a_private_directory_is_made_tightened_or_refused(tmp_path):
    made, open_, link, file = (tmp_path / name for name in ("made", "open", "link", "file"))
    open_.mkdir(mode=0o755)
    link.symlink_to(made)
    file.touch()
    make_private_dir(made / "deep")
    make_private_dir(open_)
    assert (made / "deep").stat().st_mode & 0o777 == 0o700
    assert open_.stat().st_mode & 0o777 == 0o700
    for path in (link, file):
        with pytest.raises(OutputRefused, match="a link or a file"):
            make_private_dir(path)
    with pytest.raises(OutputRefused, match=r"belongs to user id|Permission denied"):
        make_private_dir(Path("/proc/1") if os.geteuid() else _of_another_user(tmp_path))


def _of_another_user(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    path.mkdir()
    os.chown(path, 12345, 12345)
    return path


def test_little_free_space_means_later(tmp_path):
    disk_space.check(tmp_path / "not" / "there" / "yet", 1, "nothing is written")
    with pytest.raises(Retry, match="MB free"):
        disk_space.check(tmp_path, 10**12, "nothing is written")
