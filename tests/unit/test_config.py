"""The configuration: what is refused and how it is said, what wins, and that the example is the schema."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon import config
from daemon.errors import ConfigError
from tests.support.examples import examples

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def load(file: Path, text: str | bytes) -> config.Config:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return config.load(file)


BAD = [
    ("[log]\nlevels = 'info'", "log.levels", "did you mean log.level?"),
    ("[logs]\nlevel = 'info'", "logs", "did you mean log?"),
    ("nonsense = 1", "nonsense", "known here: adapter, agent, archive"),
    ("[log]\nlevel = 'loud'", "log.level", 'the default is "info"'),
    ("[log]\nlevel = 3", "log.level", 'the default is "info"'),
    ("log = 3", "log", ""),
    ("[embedding]\nbatch = 0", "embedding.batch", "the default is 32"),
    ("[embedding]\nbatch = 9999", "embedding.batch", "the default is 32"),
    ("[embedding]\nbatch = '32'", "embedding.batch", "the default is 32"),
    ("[embedding]\nbatch = true", "embedding.batch", "the default is 32"),
    ("[embedding]\nurl = 'localhost:11434'", "embedding.url", "http://127.0.0.1:11434"),
    ("[embedding]\nmodel = ''", "embedding.model", "qwen3-embedding:8b"),
    ("[index]\nchroma = 'remote'", "index.chroma", '"embedded"'),
    ("[watch]\nquiet_seconds = -1", "watch.quiet_seconds", "the default is 0.4"),
    ("[watch]\nenabled = 'yes'", "watch.enabled", "the default is true"),
    ("[limits]\nfree_mb = -5", "limits.free_mb", "the default is 200"),
    ("[[targets]]\nschedule = '@daily'", "targets[0].path: is missing", "give the folder's path"),
    ("[[targets]]\npath = ''", "targets[0].path", "give the folder's path"),
    ("[[targets]]\npath = 3", "targets[0].path", "give the folder's path"),
    ("[[targets]]\npath = '/'", "targets[0].path", "name a folder beneath it"),
    ("[[targets]]\npath = '/x/..//'", "targets[0].path", "name a folder beneath it"),
    ("[[targets]]\npath = '/x'\nrefresh = 'scheduled'", "targets[0].schedule", '"0 3 * * *"'),
    ("[[targets]]\npath = '~no-such-user/x'", "targets[0].path", "~/ on"),
    ("[output]\ndir = '~no-such-user/x'", "output.dir", "~/ on"),
    ("[[targets]]\npath = '~/x'\n[[targets]]\npath = '~/y/../x/'", "targets[1].path", "targets[0] too; keep one"),
    ("[[targets]]\npath = '/x'\nrefresh = 'sometimes'", "targets[0].refresh", ""),
    ("[[targets]]\npath = '/x'\n[[targets]]\npath = '/y'\nquestion = ['Why?']", "targets[1].question", "questions?"),
    ("[[targets]]\npath = 'shop'", "targets[0].path", "from / or ~ on"),
    ("targets = 'shop'", "targets", ""),
    ("[archive]\ndir = 'here'", "archive.dir", "from / or ~ on"),
    ("[exclude]\nprojects = ['work']", "exclude.projects[0]", "from / or ~ on"),
    ("[exclude]\nprojects = ['/a', '~no-such-user/x']", "exclude.projects[1]", "~/ on"),
    ("[exclude]\nprojects = '/a'", "exclude.projects", "the default is []"),
    ("[exclude]\npath = ['/a']", "exclude.path", "did you mean exclude.paths?"),
    ("[exclude]\npaths = ['a', '']", "exclude.paths[1]", "not a pattern"),
    ("[exclude]\npaths = ['# x']", "exclude.paths[0]", "as in a .gitignore file"),
    ("[exclude]\npaths = ['!']", "exclude.paths[0]", "as in a .gitignore file"),
    ("[exclude]\npaths = ['keys/*.pem']", "exclude.paths[0]", "from / or ~ on, or with **/ before it"),
    ("[exclude]\npaths = ['~no-such-user/x']", "exclude.paths[0]", "~/ on"),
    ("[exclude]\npaths = ['*']", "exclude.paths[0]", "matches every file"),
    ("[exclude]\npaths = ['/']", "exclude.paths[0]", "matches every file"),
    ("[exclude]\nagents = ['']", "exclude.agents[0]", ""),
    ("[output]\nsecret_files = 'yes'", "output.secret_files", "the default is false"),
    ("[archive]\ndir = ''", "archive.dir", "from / or ~ on"),
    ("[output]\ndir = './out'", "output.dir", "from / or ~ on"),
    ("[opencode]\ndata_dir = 'x'", "opencode.data_dir", "from / or ~ on"),
    ("[watch]\nrequests_dir = 'in'", "watch.requests_dir", "from / or ~ on"),
    ('[output]\ndir = "/a\\u0000b"', "output.dir", "from / or ~ on"),
    ("[opencode]\ndata_dir = '/d'\n[archive]\ndir = '/d/ours'", "archive.dir", "choose one outside it"),
    ("[opencode]\ndata_dir = '/d'\n[archive]\ndir = '/d/x/..'", "archive.dir", "choose one outside it"),
    ("[opencode]\ndata_dir = '/d'\n[output]\ndir = '/d/pages'", "output.dir", "choose one outside it"),
    ("[archive]\ndir = '/a'\n[output]\ndir = '/a/pages'", "output.dir", "choose one outside it"),
    ("[log", "not TOML", "config.example.toml"),
    (f"x = {'9' * 5000}", "a number is too long", "shorter"),
    (f"embedding = {{ batch = 0x{'f' * 5000} }}", "embedding.batch: a number that is too long", "the default is 32"),
    (f"x = {'[' * 5000}{']' * 5000}", "nested too deeply", "config.example.toml"),
    ("[[log]]", "log: [{}]", "a table that begins with [log]"),
    ("targets = ['/x']", "targets[0]: '/x'", "a table that begins with [[targets]]"),
    (b"[log]\nlevel = '\xff'", "not UTF-8", "save it as UTF-8"),
]


@pytest.mark.parametrize(("text", "key", "fix"), BAD, ids=[str(text)[:48] for text, _, _ in BAD])
def test_a_mistake_is_refused_naming_file_key_and_fix(file: Path, text: str | bytes, key: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file, text)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert key in message
    assert fix in message
    assert ";" in message
    assert "\n" not in message


def test_every_mistake_is_found_and_named_by_its_own_number(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONSTITUTE_CHROMA_URL", "remote")
    file.write_text("""
        nonsense = 1
        redact = { extra = ["(", "fine", ""] }
        [log]
        level = "loud"
        levels = 1
        [embedding]
        batch = 0
        model_dir = "hf:wrong"
        [adapter]
        token = "not printable \\u0007"
        origins = ["http://ok", "bad", "http://fine", "worse"]
        [output]
        dir = "relative"
        [chat]
        url = "http://[nonsense"
        [[targets]]
        schedule = "@daily"
        [[targets]]
        path = "/x"
        refresh = "sometimes"
        questions = [1, "Why?", 2]
        [[targets]]
        path = "x"
        [[targets]]
        path = "/x/"
        refresh = "scheduled"
    """)
    _, mistakes = config.check(file)
    told = [str(mistake).removeprefix(f"{file}: ") for mistake in mistakes]
    keys = [
        "nonsense", "log.levels", "embedding.batch", "embedding.model_dir",
        "environment variable RECONSTITUTE_CHROMA_URL", "adapter.token", "adapter.origins[1]", "adapter.origins[3]",
        "targets[0].path", "targets[1].questions[0]", "targets[1].questions[2]", "targets[1].refresh", "log.level",
        "output.dir", "targets[2].path", "chat.url", "targets[3].schedule", "targets[3].path", "redact.extra[0]",
        "redact.extra[2]",
    ]  # fmt: skip
    assert sorted(text.split(": ")[0] for text in told) == sorted(keys)
    assert next(text for text in told if text.startswith("log.level:")) == (
        "log.level: invalid enum value 'loud'; it is one of debug, info, warning, error; the default is \"info\""
    )
    assert not any("not printable" in text for text in told)  # a token is not repeated
    with pytest.raises(ConfigError) as caught:
        config.load(file)
    assert str(caught.value) == str(mistakes[0])


def test_a_token_in_a_wrong_table_is_not_repeated(file: Path) -> None:
    file.write_text('[[adapter]]\ntoken = "hunter2hunter2"\n')
    (mistake,) = config.check(file)[1]
    assert "hunter2" not in str(mistake)


def test_elements_keep_their_numbers_after_wrong_ones(file: Path) -> None:
    file.write_text("""
        redact = { extra = [1, "(", 2, "fine", "["] }
        opencode = { data_dirs = ["x", 1, 2, "/fine", "y"] }
    """)
    told = [str(mistake).removeprefix(f"{file}: ").split(": ")[0] for mistake in config.check(file)[1]]
    extra, dirs = [f"redact.extra[{n}]" for n in (0, 1, 2, 4)], [f"opencode.data_dirs[{n}]" for n in (0, 1, 2, 4)]
    assert sorted(told) == sorted(extra + dirs)


def test_an_empty_file_and_a_missing_default_one_are_the_defaults(file: Path) -> None:
    assert load(file, "") == config.load() == config.Config()


def test_a_named_file_must_be_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in (file, None):
        with pytest.raises(ConfigError, match=r"there is no such file.*--config"):
            config.load(named)
        monkeypatch.setenv("RECONSTITUTE_CONFIG", str(file))


def test_a_directory_in_place_of_the_file_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)


def test_values_of_the_file_are_taken(file: Path) -> None:
    loaded = load(file, "[limits]\npages = 7\n[[targets]]\npath = '~/shop'\nquestions = ['Why?']\nschedule = '@daily'")
    assert loaded.limits.pages == 7
    assert loaded.targets == [config.TargetSection(path="~/shop", questions=["Why?"], schedule="@daily")]


@pytest.mark.parametrize("variable", config.ENVIRONMENT)
def test_the_environment_overrides_the_file(file: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    section, key = config.ENVIRONMENT[variable]
    value, other = ("http://a:1", "http://b:1") if variable.endswith("_URL") else ("/a", "/b")
    monkeypatch.setenv(variable, value)
    loaded = load(file, f"[{section}]\n{key} = '{other}'")
    assert getattr(getattr(loaded, section), key) == value


def test_a_mistake_in_the_environment_names_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONSTITUTE_CHAT_URL", "localhost")
    with pytest.raises(ConfigError, match=r"^environment variable RECONSTITUTE_CHAT_URL: .*11434"):
        load(file, "")


@pytest.mark.parametrize("key", ["chat.url", "embedding.url", "opencode.server_url"])
@pytest.mark.parametrize("url", ["http://[nonsense", "http://", "http://a:port", "http://a:99999", "http://a b"])
def test_an_address_that_cannot_be_used_names_its_key(file: Path, key: str, url: str) -> None:
    section, _, name = key.partition(".")
    with pytest.raises(ConfigError, match=rf"config\.toml: {key}: .*is no address"):
        load(file, f"[{section}]\n{name} = '{url}'")


@pytest.mark.parametrize("url", ["https://ollama.example:8443/api", "http://[::1]:11434", "http://user:key@a"])
def test_an_address_of_any_form_is_accepted(file: Path, url: str) -> None:
    assert load(file, f"[chat]\nurl = '{url}'").chat.url == url


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("RECONSTITUTE_OUTPUT_DIR", "pages", ""),
        ("RECONSTITUTE_OUTPUT_DIR", "", ""),
        ("RECONSTITUTE_ARCHIVE_DIR", "~no-such-user/a", ""),
        ("RECONSTITUTE_ARCHIVE_DIR", "/d/ours", "[opencode]\ndata_dir = '/d'"),
        ("RECONSTITUTE_OPENCODE_DIR", "/d", "[archive]\ndir = '/d/ours'"),
        ("RECONSTITUTE_OUTPUT_DIR", "/d/pages", "[opencode]\ndata_dir = '/d'"),
        ("RECONSTITUTE_ARCHIVE_DIR", "/a", "[output]\ndir = '/a/pages'"),
    ],
)
def test_a_bad_directory_from_the_environment_blames_the_variable(
    file: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, text: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        load(file, text)
    assert str(caught.value).startswith(f"environment variable {variable}: ")
    assert str(file) not in str(caught.value)


def test_a_target_of_the_configuration_follows_home_and_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    for written, meant in (("~/x/", f"{os.environ['HOME']}/x"), ("$XDG_DATA_HOME/x", "/data/x"), ("//x/./y", "/x/y")):
        assert config.TargetSection(path=written).place == meant


def test_directories_are_absolute_and_follow_home_and_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.environ["HOME"]
    loaded = config.load()
    assert str(loaded.opencode_dir) == f"{home}/.local/share/opencode"
    assert str(loaded.archive_dir) == f"{home}/.local/share/reconstitute"
    assert str(loaded.requests_dir) == f"{home}/.local/share/reconstitute/requests"
    assert str(loaded.output_dir) == f"{home}/reconstituted"
    assert str(loaded.socket_path) == f"{home}/.local/share/reconstitute/run/control.sock"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert str(loaded.archive_dir) == "/data/reconstitute"
    assert str(loaded.socket_path) == "/run/user/7/reconstitute/control.sock"
    # The XDG specification: a relative value is to be ignored.
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "run")
    assert str(loaded.archive_dir) == f"{home}/.local/share/reconstitute"
    assert loaded.socket_path.is_absolute()


def test_the_example_in_the_repository_is_the_schemas() -> None:
    assert (ROOT / "config.example.toml").read_text() == config.example()


def test_the_example_uncommented_is_correct_and_nothing_but_defaults(file: Path) -> None:
    lines = []
    for line in config.example().splitlines():
        bare = line.removeprefix("# ")
        is_setting = line.startswith("# ") and (
            (" = " in bare and bare.split(" = ")[0].isidentifier()) or bare.startswith("[[")
        )
        lines.append(bare if is_setting else line)
    text = "\n".join(lines)
    assert len(tomllib.loads(text)["targets"]) == 1
    loaded = load(file, text)
    assert loaded.targets[0].path == "~/projects/demo"
    assert config.load(file).limits == config.Limits()
    for name in ("opencode", "archive", "embedding", "index", "chat", "output", "watch", "log"):
        assert getattr(loaded, name) == getattr(config.Config(), name), name


@given(
    text=st.text(max_size=80)
    | st.from_regex(r"\[(log|chat|targets|limits)\]\n[a-z_]{1,9} = [0-9\"a-z\[\]{}]{1,9}\n", fullmatch=True)
)
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_configuration_or_a_config_error(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        _, mistakes = config.check(file)
    except ConfigError:  # not TOML
        return
    assert len({str(mistake) for mistake in mistakes}) == len(mistakes)
    if mistakes:
        with pytest.raises(ConfigError) as caught:
            config.load(file)
        assert str(caught.value) == str(mistakes[0])
        return
    loaded = config.load(file)
    assert isinstance(loaded, config.Config)
