"""The configuration: one frozen value, read from one TOML file, made from one schema.

The structs below are the schema: `load` validates against them, `example` prints them. Every key is optional. A wrong
key, type or value raises ConfigError naming file, key and fix. Nothing here touches the disk but the file itself.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from daemon.errors import ConfigError

Positive = Annotated[int, Meta(ge=1)]


def _home(variable: str, fallback: str) -> str:
    """An XDG base directory; relative values are ignored, as the XDG specification demands."""
    value = os.environ.get(variable, "")
    return value if value.startswith("/") else str(Path.home() / fallback)


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class OpenCode(_Section, frozen=True):
    """Where OpenCode keeps its records, which are only ever read, and where its server answers, if one runs."""

    data_dir: Annotated[str, Meta(description="OpenCode's data directory")] = "$XDG_DATA_HOME/opencode"
    server_url: Annotated[
        str, Meta(pattern="^https?://", description="`opencode serve`, for chat.provider = opencode and the adapter")
    ] = "http://127.0.0.1:4096"
    server_model: Annotated[
        str, Meta(pattern="^$|^[^/]+/.+$", description="provider/model asked of that server; empty: its default")
    ] = ""


class ArchiveSection(_Section, frozen=True):
    """Where our own archive lives: records, captured files, indexes, requests. Back this directory up."""

    dir: Annotated[str, Meta(description="archive directory, made with mode 0700")] = "$XDG_DATA_HOME/reconstitute"
    capture_mb: Annotated[
        int, Meta(ge=1, le=1024, description="largest file captured from OpenCode's snapshots and tool outputs, MB")
    ] = 8
    capture_gb: Annotated[int, Meta(ge=0, description="most that is captured in all, GB; 0: nothing is")] = 8


class Embedding(_Section, frozen=True):
    """What turns text into vectors."""

    provider: Annotated[
        Literal["auto", "builtin", "ollama"],
        Meta(description="auto uses Ollama when it answers and has the model, else the built-in embedder"),
    ] = "auto"
    model: Annotated[str, Meta(min_length=1, description="Ollama's embedding model")] = "qwen3-embedding:8b"
    url: Annotated[str, Meta(pattern="^https?://", description="Ollama's address")] = "http://127.0.0.1:11434"
    num_ctx: Annotated[int, Meta(ge=256, le=1_048_576, description="context length asked of Ollama, tokens")] = 32768
    batch: Annotated[int, Meta(ge=1, le=512, description="texts per embedding call")] = 32
    model_dir: Annotated[
        str,
        Meta(description="directory with model.onnx and tokenizer.json in place of the built-in model; empty: none"),
    ] = ""


class Index(_Section, frozen=True):
    """Where vectors are searched."""

    chroma: Annotated[
        str,
        Meta(pattern="^(embedded|https?://.+)$", description="embedded, or the address of a Chroma server"),
    ] = "embedded"


class Chat(_Section, frozen=True):
    """Which model answers questions about a folder."""

    provider: Annotated[
        Literal["auto", "ollama", "opencode", "none"],
        Meta(
            description="auto uses Ollama when it answers and has a chat model; opencode asks an OpenCode server, "
            "whose models may cost money, so auto never picks it; none quotes the best passages"
        ),
    ] = "auto"
    model: Annotated[str, Meta(min_length=1, description="Ollama's chat model")] = "qwen3-vl:8b-instruct"
    url: Annotated[str, Meta(pattern="^https?://", description="Ollama's address")] = "http://127.0.0.1:11434"
    num_ctx: Annotated[int, Meta(ge=2048, le=1_048_576, description="context length asked of the model, tokens")] = (
        16384
    )
    think: Annotated[bool, Meta(description="let a model think that can; slower, sometimes better")] = False
    keep_alive: Annotated[
        str, Meta(pattern=r"^-?\d+(ms|s|m|h)$", description="how long Ollama keeps the model loaded: 10m, 24h, -1m")
    ] = "10m"
    timeout_seconds: Annotated[
        int, Meta(ge=5, le=86400, description="how long one reply may take; a cold model loads for a while")
    ] = 600


class Agent(_Section, frozen=True):
    """How much a model may do for the answers about one folder. Whatever is reached first ends it."""

    steps: Annotated[int, Meta(ge=1, le=1000, description="model calls for one question")] = 40
    minutes: Annotated[float, Meta(gt=0, le=1440, description="time for one question")] = 15
    tokens: Annotated[int, Meta(ge=1000, description="tokens read and written for one question")] = 400_000
    repeats: Annotated[int, Meta(ge=2, le=100, description="equal tool calls in a row that end a question")] = 3
    result_kb: Annotated[int, Meta(ge=1, le=1024, description="most text one tool call gives the model, kB")] = 12
    rounds: Annotated[int, Meta(ge=1, le=20, description="rounds over paths that the model newly recorded")] = 3
    target_minutes: Annotated[float, Meta(gt=0, le=10080, description="time for all questions of one target")] = 120
    folders: Annotated[int, Meta(ge=0, le=1000, description="inner folders whose purpose is asked for too")] = 12
    trajectories: Annotated[int, Meta(ge=1, le=10000, description="trajectories kept for each target")] = 40


class Adapter(_Section, frozen=True):
    """The Ollama-compatible server in front of an OpenCode server (`reconstitute adapter`)."""

    host: Annotated[str, Meta(min_length=1, description="where it listens; loopback unless you know better")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 11435
    prompt_seconds: Annotated[float, Meta(gt=0, le=86400, description="how long one reply may take")] = 300
    session_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="a client's session is kept this long for its next turn; 0: never")
    ] = 10


class Output(_Section, frozen=True):
    """Where the markdown trees are written."""

    dir: Annotated[str, Meta(description="output directory")] = "~/reconstituted"


class TargetSection(_Section, frozen=True):
    """A folder or file to keep reconstituted."""

    path: Annotated[str, Meta(min_length=1, description="absolute path, or one that begins with ~")]
    questions: Annotated[list[str], Meta(description="questions asked beside the default ones")] = []
    schedule: Annotated[str, Meta(description='when, as cron text ("0 3 * * *"); empty: only by refresh')] = ""
    refresh: Annotated[
        Literal["continuous", "scheduled"],
        Meta(description="continuous follows new messages within seconds"),
    ] = "continuous"

    @property
    def place(self) -> str:
        """The path, absolute; one leading slash, however many were written."""
        return "/" + str(_absolute(self.path)).lstrip("/")


class Watch(_Section, frozen=True):
    """How OpenCode's records are followed."""

    enabled: Annotated[bool, Meta(description="false: only periodic scans")] = True
    quiet_seconds: Annotated[
        float, Meta(ge=0, le=60, description="a message still being written is read after this long without a change")
    ] = 0.4
    scan_minutes: Annotated[float, Meta(ge=0.01, le=1440, description="a full scan at least this often")] = 10
    requests_dir: Annotated[
        str, Meta(description="request files are dropped here; empty: requests/ in archive.dir")
    ] = ""


class Limits(_Section, frozen=True):
    """Bounds that keep one bad record or one long run from taking the machine."""

    record_mb: Annotated[int, Meta(ge=1, le=4096, description="a larger record is kept aside, not read, MB")] = 64
    indexed_kb: Annotated[int, Meta(ge=1, le=65536, description="text of one part that is searchable, kB")] = 1024
    embedded_kb: Annotated[int, Meta(ge=1, le=4096, description="text of one part that is embedded, kB")] = 16
    free_mb: Annotated[int, Meta(ge=0, description="below this much free disk, writing pauses, MB")] = 200
    pages: Annotated[int, Meta(ge=1, le=1_000_000, description="most pages in one tree")] = 5000


class Log(_Section, frozen=True):
    """What the daemon says of itself. Never message text."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="least severe level shown")] = (
        "info"
    )
    format: Annotated[Literal["auto", "console", "json"], Meta(description="auto: json under systemd")] = "auto"


class Config(_Section, frozen=True):
    """The whole file."""

    opencode: OpenCode = OpenCode()
    archive: ArchiveSection = ArchiveSection()
    embedding: Embedding = Embedding()
    index: Index = Index()
    chat: Chat = Chat()
    agent: Agent = Agent()
    adapter: Adapter = Adapter()
    output: Output = Output()
    targets: list[TargetSection] = []
    watch: Watch = Watch()
    limits: Limits = Limits()
    log: Log = Log()

    @property
    def opencode_dir(self) -> Path:
        """OpenCode's data directory, absolute."""
        return _absolute(self.opencode.data_dir)

    @property
    def archive_dir(self) -> Path:
        """Our own directory, absolute."""
        return _absolute(self.archive.dir)

    @property
    def output_dir(self) -> Path:
        """The root of all output trees, absolute."""
        return _absolute(self.output.dir)

    @property
    def requests_dir(self) -> Path:
        """Where request files are dropped, absolute."""
        return _absolute(self.watch.requests_dir) if self.watch.requests_dir else self.archive_dir / "requests"

    @property
    def socket_path(self) -> Path:
        """The control socket: in the runtime directory, else (no login session) beside the archive."""
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        base = Path(runtime) / "reconstitute" if runtime.startswith("/") else self.archive_dir / "run"
        return base / "control.sock"


ENVIRONMENT = {
    "RECONSTITUTE_OPENCODE_DIR": ("opencode", "data_dir"),
    "RECONSTITUTE_ARCHIVE_DIR": ("archive", "dir"),
    "RECONSTITUTE_OUTPUT_DIR": ("output", "dir"),
    "RECONSTITUTE_REQUESTS_DIR": ("watch", "requests_dir"),
    "RECONSTITUTE_EMBEDDING_URL": ("embedding", "url"),
    "RECONSTITUTE_CHAT_URL": ("chat", "url"),
    "RECONSTITUTE_OPENCODE_URL": ("opencode", "server_url"),
    "RECONSTITUTE_CHROMA_URL": ("index", "chroma"),
}
"""Paths and URLs that the environment may override, and the key each stands for."""


def _absolute(text: str) -> Path:
    text = text.replace("$XDG_DATA_HOME", _home("XDG_DATA_HOME", ".local/share"))
    return Path(os.path.abspath(os.path.expanduser(text)))


def default_path() -> Path:
    """Where the configuration is looked for: $RECONSTITUTE_CONFIG, else $XDG_CONFIG_HOME/reconstitute/config.toml."""
    named = os.environ.get("RECONSTITUTE_CONFIG", "")
    return Path(named) if named else Path(_home("XDG_CONFIG_HOME", ".config")) / "reconstitute" / "config.toml"


def load(path: Path | None = None) -> Config:
    """Read, override from the environment, validate.

    A file named by the caller or by $RECONSTITUTE_CONFIG must exist; the default one may be missing.

    Raises:
        ConfigError: naming the file, the key and the fix.
    """
    named = path is not None or bool(os.environ.get("RECONSTITUTE_CONFIG"))
    path = path or default_path()
    tables = _read(path, must_exist=named)
    origin = {}
    for variable, (section, key) in ENVIRONMENT.items():
        if variable in os.environ:
            table = tables.setdefault(section, {})
            if isinstance(table, dict):
                table[key] = os.environ[variable]
                origin[f"{section}.{key}"] = variable
    _reject_unknown(tables, Config, path, "")
    try:
        config = msgspec.convert(tables, Config)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        key = where.rstrip("`")
        missing = re.fullmatch(r"Object missing required field `(\w+)`", reason)
        if missing:
            key, reason = f"{key}.{missing[1]}", "is missing"
        place = f"environment variable {origin[key]}" if key in origin else f"{path}: {key or 'the file'}"
        raise ConfigError(f"{place}: {reason[0].lower()}{reason[1:]}; {_fix(key)}") from None
    _reject_relative(config, path, origin)
    _reject_targets(config, path)
    return config


def _read(path: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if must_exist:
            raise ConfigError(f"{path}: there is no such file; name another with --config, or leave it out") from None
        return {}
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}; see config.example.toml for the form") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


def _reject_unknown(table: Any, schema: type, path: Path, prefix: str) -> None:
    if not isinstance(table, dict):
        return
    fields = get_type_hints(schema)
    for key, value in table.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known here: {', '.join(sorted(fields))}"
            raise ConfigError(f"{path}: {prefix}{key}: unknown key; {hint}")
        if get_origin(fields[key]) is list and isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(get_args(fields[key])[0], type) and issubclass(get_args(fields[key])[0], _Section):
                    _reject_unknown(item, get_args(fields[key])[0], path, f"{prefix}{key}[{number}].")
        elif isinstance(fields[key], type) and issubclass(fields[key], _Section):
            _reject_unknown(value, fields[key], path, f"{prefix}{key}.")


def _reject_relative(config: Config, path: Path, origin: dict[str, str]) -> None:
    """`origin`: the keys whose values came from the environment, and the variable of each."""

    def blamed(*keys: str) -> str:
        variable = next((origin[key] for key in keys if key in origin), "")
        return f"environment variable {variable}" if variable else str(path)

    places = {"opencode.data_dir": config.opencode.data_dir, "archive.dir": config.archive.dir}
    places |= {"output.dir": config.output.dir, "watch.requests_dir": config.watch.requests_dir or "/"}
    places |= {f"targets[{n}].path": target.path for n, target in enumerate(config.targets)}
    for key, text in places.items():
        if not text.startswith(("/", "~", "$XDG_DATA_HOME")) or "\0" in text:
            raise ConfigError(f"{blamed(key)}: {key}: {text!r} is relative; write it from / or ~ on")
        if os.path.expanduser(text).startswith("~"):
            raise ConfigError(f"{blamed(key)}: {key}: {text!r}: there is no such user here; write it from / or ~/ on")
    archive, output, source = config.archive_dir, config.output_dir, config.opencode_dir
    if archive == source or archive.is_relative_to(source):
        place = blamed("archive.dir", "opencode.data_dir")
        raise ConfigError(f"{place}: archive.dir: {archive} is inside OpenCode's directory; choose one outside it")
    for key, records in (("opencode.data_dir", source), ("archive.dir", archive)):
        if output.is_relative_to(records):
            place = blamed("output.dir", key)
            raise ConfigError(f"{place}: output.dir: {output} is inside a directory of records; choose one outside it")


def _reject_targets(config: Config, path: Path) -> None:
    """Targets that make no sense, each alone and together."""
    seen: dict[str, int] = {}
    for number, target in enumerate(config.targets):
        place = f"{path}: targets[{number}]"
        if target.place == "/":
            raise ConfigError(
                f"{place}.path: {target.path!r} is the root, which is no target; name a folder beneath it"
            )
        if target.refresh == "scheduled" and not target.schedule.strip():
            raise ConfigError(
                f'{place}.schedule: is missing where refresh is "scheduled"; say when, for example "0 3 * * *", or '
                f"leave refresh out"
            )
        if target.place in seen:
            other = f"targets[{seen[target.place]}]"
            raise ConfigError(f"{place}.path: {target.path!r} is the path of {other} too; keep one of the two")
        seen[target.place] = number


def _fix(key: str) -> str:
    field = _find(key)
    if field is None:
        return "see config.example.toml for the form"
    if field.required:
        return "give the folder's path" if field.name == "path" else "it must be given"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"the default is {_toml(default)}"


def _find(key: str) -> msgspec.structs.FieldInfo | None:
    schema: Any = Config
    found = None
    for name in re.sub(r"\[[^]]*\]", "", key).split("."):
        fields = {f.name: f for f in msgspec.structs.fields(schema)} if isinstance(schema, type) else {}
        found = fields.get(name)
        if found is None:
            return None
        schema = get_args(found.type)[0] if get_origin(found.type) is list else found.type
    return found


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)


def _lines(schema: type[msgspec.Struct]) -> list[str]:
    hints = get_type_hints(schema, include_extras=True)
    lines = []
    for field in msgspec.structs.fields(schema):
        meta = next((m for m in get_args(hints[field.name])[1:] if isinstance(m, Meta)), Meta())
        base = get_args(hints[field.name])[0] if get_args(hints[field.name]) else hints[field.name]
        choices = f" ({' | '.join(get_args(base))})" if get_origin(base) is Literal else ""
        default: Any = field.default if field.default is not msgspec.NODEFAULT else None
        if default is None and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        shown = _toml(default) if default is not None else '"~/projects/demo"'
        lines += [f"# {meta.description}{choices}", f"# {field.name} = {shown}"]
    return lines


def example() -> str:
    """The text of config.example.toml: every key with its default, commented out, from the schema."""
    lines = [
        "# Reconstitute: every key is optional; what stands here is the default.",
        "# Copy to ~/.config/reconstitute/config.toml and uncomment what you change.",
        "# The environment overrides: " + ", ".join(f"{v} ({s}.{k})" for v, (s, k) in ENVIRONMENT.items()) + ".",
    ]
    for field in msgspec.structs.fields(Config):
        is_list = get_origin(field.type) is list
        schema = get_args(field.type)[0] if is_list else field.type
        header = f"# [[{field.name}]]" if is_list else f"[{field.name}]"
        doc = (schema.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"# {doc}", header, *_lines(schema)]
    return "\n".join(lines) + "\n"
