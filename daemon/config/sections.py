"""The configuration's schema: one frozen structure a table, every key with its default and what it means.

`daemon.config` reads files against it; nothing here touches the disk.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta


def home(variable: str, fallback: str) -> str:
    """An XDG base directory; relative values are ignored, as the XDG specification demands."""
    value = os.environ.get(variable, "")
    return value if value.startswith("/") else str(Path.home() / fallback)


def cache_dir() -> Path:
    """Where is kept what can be made or fetched again."""
    return Path(home("XDG_CACHE_HOME", ".cache")) / "reconstitute"


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class OpenCode(Section, frozen=True):
    """Where OpenCode keeps its records, which are only ever read, and where its server answers, if one runs."""

    data_dir: Annotated[str, Meta(description="OpenCode's data directory")] = "$XDG_DATA_HOME/opencode"
    data_dirs: Annotated[
        list[str], Meta(description="further data directories, as other values of XDG_DATA_HOME make them")
    ] = []
    databases: Annotated[
        list[str],
        Meta(
            description="further databases, as OPENCODE_DB names them: a path, or a name in data_dir; OPENCODE_DB "
            "itself and each opencode*.db of a data directory are followed anyway"
        ),
    ] = []
    server_url: Annotated[
        str, Meta(pattern="^https?://", description="`opencode serve`, for chat.provider = opencode and the adapter")
    ] = "http://127.0.0.1:4096"
    server_model: Annotated[
        str, Meta(pattern="^$|^[^/]+/.+$", description="provider/model asked of that server; empty: its default")
    ] = ""


class ArchiveSection(Section, frozen=True):
    """Where our own archive lives: records, captured files, indexes, requests. `reconstitute backup` backs it up."""

    dir: Annotated[str, Meta(description="archive directory, made with mode 0700")] = "$XDG_DATA_HOME/reconstitute"
    capture_mb: Annotated[
        int, Meta(ge=1, le=1024, description="largest file captured from OpenCode's snapshots and tool outputs, MB")
    ] = 8
    capture_gb: Annotated[int, Meta(ge=0, description="most that is captured in all, GB; 0: nothing is")] = 8


class Embedding(Section, frozen=True):
    """What is searched by meaning, and what turns text into vectors."""

    what: Annotated[
        Literal["said", "all", "none"],
        Meta(
            description="what is found by meaning: said is prompts, answers, reasoning, titles; all has tool calls "
            "too, embedded after everything that was said; none needs no model, and everything is found by its words"
        ),
    ] = "all"
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
        Meta(
            pattern=r"^(hf:[\w.-]+/[\w.-]+(@[\w./-]+)?|(?!hf:).*)$",
            description="directory of a sentence-transformer in ONNX form, or hf:OWNER/NAME of the Hugging Face hub, "
            "downloaded once; empty: the built-in model",
        ),
    ] = ""


class Index(Section, frozen=True):
    """Where vectors are searched."""

    chroma: Annotated[
        str,
        Meta(pattern="^(embedded|https?://.+)$", description="embedded, or the address of a Chroma server"),
    ] = "embedded"


class Chat(Section, frozen=True):
    """Which model answers questions about a folder."""

    provider: Annotated[
        Literal["auto", "ollama", "opencode", "none"],
        Meta(
            description="auto uses Ollama when it answers and has a chat model; opencode asks an OpenCode server, "
            "whose models may cost money, so auto never picks it; none makes the pages from facts alone"
        ),
    ] = "auto"
    model: Annotated[str, Meta(min_length=1, description="Ollama's chat model")] = "qwen3-vl:8b-instruct"
    url: Annotated[str, Meta(pattern="^https?://", description="Ollama's address")] = "http://127.0.0.1:11434"
    num_ctx: Annotated[int, Meta(ge=6144, le=1_048_576, description="context length asked of the model, tokens")] = (
        16384
    )
    think: Annotated[bool, Meta(description="let a model think that can; slower, sometimes better")] = False
    keep_alive: Annotated[
        str, Meta(pattern=r"^-?\d+(ms|s|m|h)$", description="how long Ollama keeps the model loaded: 10m, 24h, -1m")
    ] = "10m"
    timeout_seconds: Annotated[
        int, Meta(ge=5, le=86400, description="how long one reply may take; a cold model loads for a while")
    ] = 600


class Agent(Section, frozen=True):
    """How much a model may do for the answers about one folder. Whatever is reached first ends it."""

    steps: Annotated[int, Meta(ge=1, le=1000, description="model calls for one question")] = 40
    minutes: Annotated[float, Meta(gt=0, le=1440, description="time for one question")] = 15
    tokens: Annotated[int, Meta(ge=1000, description="tokens read and written for one question")] = 400_000
    repeats: Annotated[int, Meta(ge=2, le=100, description="equal tool calls in a row that end a question")] = 3
    result_kb: Annotated[int, Meta(ge=1, le=1024, description="most text one tool call gives the model, kB")] = 12
    rounds: Annotated[int, Meta(ge=1, le=20, description="rounds over paths that the model newly recorded")] = 3
    target_minutes: Annotated[float, Meta(gt=0, le=10080, description="time for all questions of one target")] = 120
    quiet_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="a continuous target is asked about after so long without a new message")
    ] = 3
    folders: Annotated[int, Meta(ge=0, le=1000, description="inner folders whose purpose is asked for too")] = 12
    summaries: Annotated[
        int, Meta(ge=0, le=10000, description="files and sessions described in one run, newest first; 0: none")
    ] = 40
    trajectories: Annotated[int, Meta(ge=1, le=10000, description="trajectories kept for each target")] = 40


class Adapter(Section, frozen=True):
    """The Ollama- and OpenAI-compatible server in front of an OpenCode server (`reconstitute adapter`)."""

    host: Annotated[str, Meta(min_length=1, description="where it listens; loopback unless you know better")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 11435
    token: Annotated[
        str,
        Meta(pattern="^[!-~]*$", description="asked of every client (Authorization: Bearer TOKEN); empty: of none"),
    ] = ""
    origins: Annotated[
        list[Annotated[str, Meta(pattern=r"^(\*|[a-z][a-z0-9+.-]*://[^/\s]+)$")]],
        Meta(description='pages and programs that may ask from a browser: "http://localhost:*", "app://*"; none else'),
    ] = []
    prompt_seconds: Annotated[float, Meta(gt=0, le=86400, description="how long one reply may take")] = 300
    session_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="a client's session is kept this long for its next turn; 0: never")
    ] = 10


class Web(Section, frozen=True):
    """The page that the service shows in a browser on this machine (`reconstitute web`)."""

    enabled: Annotated[bool, Meta(description="serve it always; false: from the first `reconstitute web` on")] = False
    port: Annotated[int, Meta(ge=0, le=65535, description="its port on 127.0.0.1; 0: any free one")] = 11436


class Output(Section, frozen=True):
    """Where the markdown trees are written."""

    dir: Annotated[str, Meta(description="output directory")] = "~/reconstituted"
    secret_files: Annotated[
        bool, Meta(description="publish what files such as .env, *.pem or id_rsa hold; false: pages only name them")
    ] = False


class TargetSection(Section, frozen=True):
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
        return "/" + str(absolute(self.path)).lstrip("/")


class Watch(Section, frozen=True):
    """How OpenCode's records are followed."""

    enabled: Annotated[bool, Meta(description="false: only periodic scans")] = True
    quiet_seconds: Annotated[
        float, Meta(ge=0, le=60, description="a message still being written is read after this long without a change")
    ] = 0.4
    scan_minutes: Annotated[float, Meta(ge=0.01, le=1440, description="a full scan at least this often")] = 10
    requests_dir: Annotated[
        str, Meta(description="request files are dropped here; empty: requests/ in archive.dir")
    ] = ""


class Limits(Section, frozen=True):
    """Bounds that keep one bad record or one long run from taking the machine."""

    record_mb: Annotated[int, Meta(ge=1, le=4096, description="a larger record is kept as a file of its own, MB")] = 64
    indexed_kb: Annotated[int, Meta(ge=1, le=65536, description="text of one part that is searchable, kB")] = 1024
    embedded_kb: Annotated[int, Meta(ge=1, le=4096, description="text of one part that is embedded, kB")] = 16
    free_mb: Annotated[int, Meta(ge=0, description="below this much free disk, writing pauses, MB")] = 200
    pages: Annotated[int, Meta(ge=1, le=1_000_000, description="most pages in one tree")] = 5000


class Redact(Section, frozen=True):
    """What is hidden besides what Reconstitute takes for a secret, and what never is. Regular expressions."""

    extra: Annotated[
        list[str], Meta(description="hide what these match, or their group (?P<secret>...): internal ids, names")
    ] = []
    allow: Annotated[list[str], Meta(description="never hide what one of these matches whole: sample values")] = []


class Exclude(Section, frozen=True):
    """What is never taken in. What is archived already stays; texts in <private>...</private> are never taken in."""

    paths: Annotated[
        list[str],
        Meta(
            description="files whose content is left out, as in a .gitignore file (*.pem, secrets/), or by a path from "
            "/ or ~ on; calls that name one are archived without their content"
        ),
    ] = []
    projects: Annotated[
        list[str], Meta(description="folders, from / or ~ on; sessions that ran in or beneath one are not read")
    ] = []
    agents: Annotated[
        list[Annotated[str, Meta(min_length=1)]],
        Meta(description="names of OpenCode's agents whose messages are not read"),
    ] = []


class Log(Section, frozen=True):
    """What the daemon says of itself. Never message text."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="least severe level shown")] = (
        "info"
    )
    format: Annotated[Literal["auto", "console", "json"], Meta(description="auto: json under systemd")] = "auto"
    notify: Annotated[
        bool, Meta(description="a desktop notification (notify-send) when something begins to need attention")
    ] = False


class Config(Section, frozen=True):
    """The whole file."""

    opencode: OpenCode = OpenCode()
    archive: ArchiveSection = ArchiveSection()
    embedding: Embedding = Embedding()
    index: Index = Index()
    chat: Chat = Chat()
    agent: Agent = Agent()
    adapter: Adapter = Adapter()
    web: Web = Web()
    output: Output = Output()
    targets: list[TargetSection] = []
    watch: Watch = Watch()
    limits: Limits = Limits()
    redact: Redact = Redact()
    exclude: Exclude = Exclude()
    log: Log = Log()

    @property
    def opencode_dir(self) -> Path:
        """OpenCode's data directory, absolute."""
        return absolute(self.opencode.data_dir)

    @property
    def opencode_dirs(self) -> tuple[Path, ...]:
        """All of OpenCode's data directories, absolute; `opencode_dir` first."""
        return tuple(dict.fromkeys((self.opencode_dir, *map(absolute, self.opencode.data_dirs))))

    @property
    def databases(self) -> tuple[Path, ...]:
        """The databases that are followed besides every opencode*.db of a data directory, absolute.

        $OPENCODE_DB is read as OpenCode reads it: a name is one in its data directory; one in memory is not to be had.
        """
        named = [*self.opencode.databases, os.environ.get("OPENCODE_DB", "")]
        return tuple(dict.fromkeys(self._database(name) for name in named if name and name != ":memory:"))

    def _database(self, name: str) -> Path:
        is_path = name.startswith(("/", "~", "$XDG_DATA_HOME"))
        return absolute(name if is_path else str(self.opencode_dir / name))

    @property
    def archive_dir(self) -> Path:
        """Our own directory, absolute."""
        return absolute(self.archive.dir)

    @property
    def output_dir(self) -> Path:
        """The root of all output trees, absolute."""
        return absolute(self.output.dir)

    @property
    def requests_dir(self) -> Path:
        """Where request files are dropped, absolute."""
        return absolute(self.watch.requests_dir) if self.watch.requests_dir else self.archive_dir / "requests"

    @property
    def socket_path(self) -> Path:
        """The control socket: in the runtime directory, else (no login session) beside the archive."""
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        base = Path(runtime) / "reconstitute" if runtime.startswith("/") else self.archive_dir / "run"
        return base / "control.sock"


def absolute(text: str) -> Path:
    """A path as the file writes it, with ~ and $XDG_DATA_HOME put in."""
    text = text.replace("$XDG_DATA_HOME", home("XDG_DATA_HOME", ".local/share"))
    return Path(os.path.abspath(os.path.expanduser(text)))


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
"""Paths and URLs that the environment may override, each with its key."""
