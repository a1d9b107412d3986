"""The systemd unit: as shipped, as written for this installation, and as systemd's own tools read it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.cli.subcommands import isolation
from daemon.cli.subcommands import service as unit
from daemon.config import load
from tests.support.processes import forks
from tests.support.servers.scripted_service import ScriptedService, serving

ROOT = Path(__file__).parents[2]

SYSTEMCTL = """#!/bin/sh
# A user manager that says yes and writes down what it was asked.
printf '%s\\n' "$*" >> "$ASKED"
printf '%s\\n' "LoadState=${LOAD:-loaded}" "ActiveState=${STATE:-active}" "SubState=x" "Result=exit-code"
"""
JOURNALCTL = """#!/bin/sh
printf 'Nov 27 reconstitute: line %s\\n' 1 2
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the unit will go; no user manager answers there."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return tmp_path / "config" / "systemd" / "user" / "reconstitute.service"


def service(*words: str, before: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    done = forks.command(*before, "service", *words, cwd=ROOT, environment={**os.environ, **environment})
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def verify(path: Path, runtime: Path) -> str:
    """What systemd-analyze complains about; its exit code is 0 even for unknown keys."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        timeout=60,
    )
    return "\n".join(line for line in done.stderr.splitlines() if path.name in line)


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed on this machine"
)


def test_the_unit_in_the_repository_is_the_one_in_the_package() -> None:
    assert (ROOT / "systemd" / "reconstitute.service").read_text() == unit.unit_template()
    assert (ROOT / "systemd" / "isolation.conf").read_text() == isolation.shipped()


def test_the_unit_keeps_what_was_measured_to_work_in_a_user_manager() -> None:
    """What holds in every user's manager is there; what needs namespaces, does nothing or harms is not."""
    keys = settings(unit.unit_template())
    for key in ("NoNewPrivileges", "MemoryDenyWriteExecute", "LockPersonality", "RestrictSUIDSGID", "RestrictRealtime"):
        assert keys[key] == "yes"
    assert keys["Type"] == "notify"
    assert keys["NotifyAccess"] == "main"
    assert "SystemCallFilter=@system-service\n" in unit.unit_template()
    assert keys["RuntimeDirectory"] == "reconstitute"
    assert keys["UMask"] == "0077"
    assert keys["LimitCORE"] == "0"
    assert int(keys["TimeoutStopSec"]) > 20 < int(keys["WatchdogSec"])
    useless = {"User", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateUsers", "ReadWritePaths", "PrivateDevices"}
    harmful = {"ProtectControlGroups", "AmbientCapabilities", "PrivateNetwork", "IOWeight"}
    assert not (useless | harmful) & set(keys)


def test_the_drop_in_makes_the_namespaces_that_its_lines_need() -> None:
    keys = settings(isolation.shipped())
    assert keys["PrivateUsers"] == "yes"
    # The home and /tmp are where pages go and OpenCode's files are.
    assert not {"ProtectHome", "PrivateTmp", "InaccessiblePaths"} & set(keys)


@needs_systemd
def test_systemd_reads_the_unit_and_the_drop_in_without_complaint(tmp_path: Path) -> None:
    path = tmp_path / "reconstitute.service"
    path.write_text(unit.unit_text([sys.executable, "-m", "daemon.cli", "run"]))
    drop_in = tmp_path / "reconstitute.service.d"
    drop_in.mkdir()
    shutil.copy(ROOT / "systemd" / "isolation.conf", drop_in)
    assert verify(path, tmp_path) == ""
    (drop_in / "isolation.conf").write_text("[Service]\nNoSuchKey=1\n")
    complaint = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        timeout=60,
    )
    assert "NoSuchKey" in complaint.stderr  # this test would notice


@needs_systemd
@pytest.mark.parametrize(
    "name", ["plain", "with space", "100%h", 'quo"te', "back\\slash", "dollar$HOME", "ünï", "semi;colon"]
)
def test_systemd_finds_the_program_whatever_its_directory_is_called(tmp_path: Path, name: str) -> None:
    program = tmp_path / name / "reconstitute"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "reconstitute.service"
    path.write_text(unit.unit_text([str(program), "run"]))
    assert verify(path, tmp_path) == ""
    if "/bin/sh" not in path.read_text():  # else systemd is given the path as an argument, and does not look
        program.unlink()
        assert "is not executable" in verify(path, tmp_path)


@given(
    words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1), min_size=1)
)
def test_a_command_of_any_words_stays_one_line_and_untouched(words: list[str]) -> None:
    written = unit.unit_text(words)
    assert len([line for line in written.split("\n") if line.startswith("ExecStart=")]) == 1
    assert len(written.split("\n")) == len(unit.unit_template().split("\n")) + 1
    assert unit.is_untouched(written)
    assert not unit.is_untouched(written.replace("Nice=10", "Nice=0"))


@pytest.mark.parametrize("text", ["", "x", "[Unit]\n", unit.unit_template()])
def test_what_we_did_not_write_is_not_called_untouched(text: str) -> None:
    assert not unit.is_untouched(text)


def test_install_without_a_user_manager_writes_the_unit_and_explains(place: Path) -> None:
    done = service("install")
    assert done.returncode == 0, done.stderr
    assert place.read_text() == unit.unit_text([*unit.installation(), "run"])
    start = settings(place.read_text())["ExecStart"]
    assert Path(start.split()[0]).is_absolute()
    assert Path(start.split()[0]).exists()
    assert "systemctl --user enable --now reconstitute.service" in done.stdout


def test_the_installed_command_starts_this_very_installation(place: Path) -> None:
    service("install")
    words = settings(place.read_text())["ExecStart"].split()
    version = subprocess.run([*words[:-1], "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert words[-1] == "run"
    assert version.startswith("reconstitute ")


def test_the_unit_is_on_the_disk_when_install_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut, the unit is the old one or the new one, whole: file and folder are synced."""
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd)))
    assert unit._write(place, unit.unit_text(["/usr/bin/reconstitute", "run"]), force=False)
    inodes = {status.st_ino for status in synced}
    assert {place.stat().st_ino, place.parent.stat().st_ino} <= inodes


def test_installing_again_changes_nothing(place: Path) -> None:
    service("install")
    before = place.stat()
    done = service("install")
    assert "is up to date" in done.stdout
    assert (place.stat().st_mtime_ns, place.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_the_configuration_file_of_the_install_is_the_services(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "my config.toml"
    file.write_text("")
    assert service("install", before=("--config", str(file))).returncode == 0
    assert f' --config "{file}" run' in place.read_text()


def test_a_wrong_configuration_is_not_installed(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[log]\nlevle = 'info'\n")
    assert service("install", before=("--config", str(file))).returncode == 78
    assert not place.exists()


def test_a_unit_of_an_older_version_is_updated_and_the_change_shown(place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_text(unit.unit_text(["/old/place/reconstitute", "run"]))
    done = service("install")
    assert done.returncode == 0
    assert "-ExecStart=/old/place/reconstitute run" in done.stdout
    assert "+ExecStart=" in done.stdout
    assert place.read_text() == unit.unit_text([*unit.installation(), "run"])


@pytest.mark.parametrize("kind", ["edited", "foreign", "link"])
def test_a_unit_that_a_person_made_or_edited_is_kept_unless_forced(place: Path, kind: str, tmp_path: Path) -> None:
    place.parent.mkdir(parents=True)
    mine = unit.unit_text(["/old/place/reconstitute", "run"])
    text = {"edited": mine.replace("Nice=10", "Nice=0"), "foreign": "[Unit]\n", "link": mine}[kind]
    if kind == "link":
        (tmp_path / "dotfile").write_text(text)
        place.symlink_to(tmp_path / "dotfile")
    else:
        place.write_text(text)
    done = service("install")
    assert done.returncode == 73
    assert "--force" in done.stderr
    assert place.read_text() == text
    if kind != "link":
        assert service("uninstall").returncode == 73
        assert place.read_text() == text
    assert service("install", "--force").returncode == 0
    assert not place.is_symlink()
    assert unit.is_untouched(place.read_text())


def test_variables_that_the_service_will_not_see_are_pointed_out(place: Path) -> None:
    done = service("install", RECONSTITUTE_OUTPUT_DIR="/pages")
    assert "RECONSTITUTE_OUTPUT_DIR is set here, but the service does not see it; put output.dir" in done.stderr


def test_uninstall_removes_our_unit_and_then_has_nothing_to_remove(place: Path) -> None:
    service("install")
    assert service("uninstall").returncode == 0
    assert not place.exists()
    again = service("uninstall")
    assert (again.returncode, "nothing to remove" in again.stdout) == (0, True)


def test_the_user_manager_reloads_enables_and_restarts_only_on_change(place: Path, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "systemctl"
    fake.parent.mkdir()
    fake.write_text(SYSTEMCTL)
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    asked = tmp_path / "asked"
    environment = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "ASKED": str(asked)}

    def questions(*words: str) -> list[str]:
        asked.write_text("")
        assert service(*words, **environment).returncode == 0
        return [line.removeprefix("--user --no-pager ").split()[0] for line in asked.read_text().splitlines()]

    assert questions("install") == ["show", "is-active", "daemon-reload", "enable", "restart"]
    assert questions("install") == ["show", "is-active", "daemon-reload", "enable"]
    assert questions("uninstall") == ["show", "disable", "daemon-reload"]
    assert not place.exists()


SYSTEMD_RUN = """#!/bin/sh
printf '%s\\n' "$*" >> "$ASKED"
echo "Job failed: namespaces are forbidden" >&2
exit ${TRIED:-0}
"""


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def _systemd_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    """A systemd-run that ends with this code; the file in which it writes down what it was asked."""
    program = tmp_path / "bin" / "systemd-run"
    program.parent.mkdir(exist_ok=True)
    program.write_text(SYSTEMD_RUN)
    program.chmod(0o755)
    for name, value in {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "ASKED": str(tmp_path / "asked"),
        "TRIED": str(code),
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "asked"


@pytest.mark.usefixtures("place", "not_root")
def test_the_drop_in_is_there_only_where_a_trial_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = _systemd_run(tmp_path, monkeypatch, 0)
    assert isolation.install()
    assert isolation.place().read_text() == unit.stamped(isolation.shipped())
    assert "--property=PrivateUsers=yes" in asked.read_text()
    assert "%h" not in asked.read_text()
    assert not isolation.install()
    _systemd_run(tmp_path, monkeypatch, 1)
    assert isolation.install()
    assert not isolation.place().exists()
    assert "namespaces are forbidden" in capsys.readouterr().out
    assert not isolation.install()


@pytest.mark.usefixtures("place", "not_root")
def test_a_drop_in_that_a_person_emptied_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _systemd_run(tmp_path, monkeypatch, 0)
    isolation.place().parent.mkdir(parents=True)
    isolation.place().write_text("")
    assert not isolation.install()
    isolation.uninstall()
    assert isolation.place().read_text() == ""


@pytest.mark.usefixtures("place")
def test_root_gets_no_drop_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not isolation.install()
    assert "files of other users" in isolation.lack()


def _with_a_manager(tmp_path: Path) -> dict[str, str]:
    """An environment in which a user manager answers."""
    (tmp_path / "bin").mkdir()
    for name, text in {"systemctl": SYSTEMCTL, "journalctl": JOURNALCTL}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked")}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("RECONSTITUTE_ARCHIVE_DIR", "keeps the archive"),
        ("RECONSTITUTE_OPENCODE_DIR", "another configuration than this command: opencode.data_dir"),
        ("RECONSTITUTE_OUTPUT_DIR", "another configuration than this command: output.dir"),
        ("", ""),
    ],
)
def test_service_status_says_what_the_service_does_not_share(tmp_path: Path, variable: str, says: str) -> None:
    with serving(ScriptedService(), tmp_path / "reconstitute" / "control.sock", config=load()):
        done = service("status", **_with_a_manager(tmp_path), **({variable: "/elsewhere"} if variable else {}))
    assert done.returncode == 0
    assert says in done.stderr
    assert bool(done.stderr) == bool(says)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("load_state", "active", "code", "says"),
    [
        ("loaded", "active", 0, "line 2"),
        ("loaded", "inactive", 3, "line 2"),
        ("loaded", "activating", 3, "line 2"),
        ("loaded", "failed", 3, "It failed (exit-code)"),
        ("not-found", "inactive", 4, "Not installed"),
    ],
)
def test_service_status_ends_as_systemctl_does(
    tmp_path: Path, load_state: str, active: str, code: int, says: str
) -> None:
    done = service("status", **_with_a_manager(tmp_path), LOAD=load_state, STATE=active)
    assert (done.returncode, says in done.stdout) == (code, True)


def test_a_configuration_of_the_environment_is_the_services_too(place: Path, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("")
    assert service("install", RECONSTITUTE_CONFIG=str(tmp_path / "my.toml")).returncode == 0
    assert f"--config {tmp_path / 'my.toml'} run" in place.read_text()


@pytest.mark.parametrize("value", ["mine.db", "/home/dev/my data/100%.db", '/home/dev/$x/a"b.db', "/home/dev/ü.db"])
def test_the_unit_has_the_database_that_the_shell_names(place: Path, value: str) -> None:
    done = service("install", OPENCODE_DB=value)
    assert done.returncode == 0, done.stderr
    written = place.read_text()
    assert unit.is_untouched(written)
    (line,) = [line for line in written.splitlines() if "OPENCODE_DB" in line]
    assert line.startswith("Environment=")
    if shutil.which("systemd-analyze"):
        assert "OPENCODE_DB" not in verify(place, place.parents[3])
