"""Innocent texts that look like secrets, by kind, with values that no one chose: made from a seed, many of each kind."""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator

_SEED = 20_261_122
_MANY = 12

_WORDS = [
    "account",
    "archive",
    "backup",
    "basket",
    "branch",
    "bridge",
    "builder",
    "button",
    "canvas",
    "channel",
    "client",
    "cluster",
    "column",
    "commit",
    "config",
    "container",
    "context",
    "counter",
    "cursor",
    "database",
    "default",
    "deploy",
    "document",
    "domain",
    "editor",
    "element",
    "engine",
    "event",
    "export",
    "factory",
    "feature",
    "field",
    "filter",
    "folder",
    "gateway",
    "handler",
    "header",
    "history",
    "image",
    "import",
    "index",
    "invoice",
    "journal",
    "kernel",
    "label",
    "layout",
    "ledger",
    "library",
    "listener",
    "locale",
    "manager",
    "marker",
    "matrix",
    "member",
    "message",
    "metric",
    "migration",
    "module",
    "monitor",
    "network",
    "object",
    "option",
    "order",
    "outbox",
    "owner",
    "package",
    "palette",
    "parser",
    "partner",
    "patch",
    "payment",
    "planner",
    "plugin",
    "pointer",
    "policy",
    "profile",
    "project",
    "prompt",
    "property",
    "provider",
    "query",
    "queue",
    "reader",
    "record",
    "region",
    "release",
    "render",
    "report",
    "request",
    "resource",
    "response",
    "result",
    "review",
    "router",
    "runner",
    "sample",
    "schema",
    "screen",
    "search",
    "section",
    "segment",
    "sender",
    "server",
    "service",
    "session",
    "setting",
    "shadow",
    "signal",
    "source",
    "stage",
    "storage",
    "stream",
    "string",
    "student",
    "style",
    "summary",
    "supply",
    "switch",
    "symbol",
    "system",
    "table",
    "target",
    "template",
    "terminal",
    "thread",
    "ticket",
    "timer",
    "topic",
    "tracker",
    "transfer",
    "tree",
    "trigger",
    "update",
    "upload",
    "user",
    "vector",
    "vendor",
    "version",
    "viewer",
    "volume",
    "wallet",
    "watcher",
    "widget",
    "window",
    "worker",
    "writer",
]

Make = Callable[[random.Random], str]


def _hex(size: int) -> Make:
    return lambda r: "".join(r.choices("0123456789abcdef", k=size))


def _uuid(r: random.Random) -> str:
    return str(uuid.UUID(int=r.getrandbits(128), version=4))


def _words(r: random.Random, join: str = "_", count: int = 3) -> str:
    return join.join(r.choices(_WORDS, k=count))


def _camel(r: random.Random) -> str:
    return "".join(word.title() for word in r.choices(_WORDS, k=3))


def _id(prefix: str, size: int = 24) -> Make:
    return lambda r: prefix + "".join(r.choices(string.ascii_letters + string.digits, k=size))


def _base64(size: int) -> Make:
    return lambda r: base64.b64encode(r.randbytes(size)).decode()


def _t(text: str, **makers: Make) -> Make:
    return lambda r: text.format(**{name: make(r) for name, make in makers.items()})


KINDS: dict[str, list[Make]] = {
    "hashes": [
        _t("commit {h}", h=_hex(40)), _t("sha256:{h}", h=_hex(64)), _t("{h}  dist/app.tar.gz", h=_hex(64)),
        _t("md5sum {h}", h=_hex(32)), _t('ETag: "{h}"', h=_hex(32)), _t("index {h}..{g} 100644", h=_hex(7), g=_hex(7)),
        _t("cache key {h} was not found", h=_hex(40)), _t('checksum = "{h}"', h=_hex(64)),
        _t("layer {h}: Pull complete", h=_hex(12)), _t("GPG key fingerprint {h}", h=_hex(40)),
        _t("Signed-off-by: bob\ntree {h}\nparent {g}", h=_hex(40), g=_hex(40)),
    ],
    "ids": [
        _uuid, _t('"id": "{u}"', u=_uuid), _t("key: {u}", u=_uuid), _t("idempotency-key: {u}", u=_uuid),
        _t("ses_{i}", i=_id("", 26)), _t('{{"sessionID": "{i}", "messageID": "{j}"}}', i=_id("ses_"), j=_id("msg_")),
        _t("trace_id={h} span_id={g}", h=_hex(32), g=_hex(16)), _t("request {u} took 12 ms", u=_uuid),
        _t("arn:aws:iam::123456789012:role/{w}-{h}", w=lambda r: _words(r, "-"), h=_hex(8)),
        _t("primary_key = {h}", h=_hex(24)), _t("partition_key: user#{h}", h=_hex(12)),
        _t("pod/{w}-{h}-x2k4j", w=lambda r: _words(r, "-"), h=_hex(9)), _t("G-{i}", i=_id("", 10)),
    ],
    "paths": [
        _t("/run/secrets/{w}_1", w=_words), _t("password_file: /etc/{w}/password2.txt", w=_words),
        _t("TOKEN_PATH=/var/lib/{w}/token-v2", w=_words), _t("src/auth/{w}/token2.ts:14:3", w=_words),
        _t("key_file = ~/.ssh/{w}_ed25519", w=_words), _t("--password-file ./{w}/pw1", w=_words),
        _t("import {{ token }} from '@{w}/tokens/v2'", w=_words), _t("secret: projects/{w}/secrets/db/versions/3", w=_words),
        _t("passwordFile={w}.properties", w=_words), _t("secretName: {w}-tls-2", w=lambda r: _words(r, "-")),
    ],
    "code about passwords": [
        _t("password = {w}(request.form['password'])", w=_words), _t("const token = await {w}.getToken2()", w=_words),
        _t("if (password !== {c}.password2) return", c=_camel), _t("password: {c}", c=_camel),
        _t("token: Promise<{c}>", c=_camel), _t("secret = {w}.load_secret_v2(path)", w=_words),
        _t("def check_password(self, password: {c}) -> bool:", c=_camel), _t("api_key={w}_api_key2", w=_words),
        _t('throw new Error("password {w} is not valid")', w=lambda r: _words(r, " ")),
        _t("password_hash = bcrypt.hashpw({w}, bcrypt.gensalt(12))", w=_words), _t("PASSWORD_MIN_LENGTH = 12  # {w}", w=_words),
        _t('errors.password = t("{w}.password.too_short")', w=lambda r: _words(r, ".")),
        _t('token := r.Header.Get("X-{c}-Token")', c=_camel), _t("private final String password{c};", c=_camel),
        _t("login(username, password, {w}2)", w=_words), _t("secretKey: process.env.{w}_SECRET_KEY_2", w=lambda r: _words(r).upper()),
        _t("auth: {{ type: '{w}', required: true }}", w=_words), _t("credentials = Credentials.from_{w}(info2)", w=_words),
        _t("password VARCHAR(255) NOT NULL, -- {w}", w=_words), _t("SELECT token, secret FROM {w} WHERE id = 12345678", w=_words),
    ],
    "lock files": [
        _t('"integrity": "sha512-{b}"', b=_base64(64)), _t("{w}@^1.2.3:\n  checksum: 10c0/{h}", w=_words, h=_hex(64)),
        _t("golang.org/x/{w} v0.31.0 h1:{b}", w=_words, b=_base64(32)), _t('{{file = "{w}.whl", hash = "sha256:{h}"}}', w=_words, h=_hex(64)),
        _t('"js-tokens": "^4.0.{h}"', h=lambda r: str(r.randrange(99))), _t("jsonwebtoken-{h}.tgz#{g}", h=lambda r: "9.0.2", g=_hex(40)),
        _t('"csrf-token": "npm:@{w}/csrf-token@1.2.3"', w=_words), _t("  specifier: workspace:{w}-tokens@2", w=_words),
    ],
    "data": [
        _t('<img src="data:image/png;base64,iVBORw0KGgo{b}">', b=_base64(90)), _t("background: url(data:font/woff2;base64,{b})", b=_base64(120)),
        _t("{b}", b=_base64(57)), _t("avatar={b}", b=_base64(60)), _t("nonce-{b}", b=_base64(16)),
        _t("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b} bob@host", b=_base64(31)), _t('"sourcesContent": ["{b}"]', b=_base64(90)),
    ],
    "URLs": [
        _t("https://example.org/{w}/{u}?page=2&sort=key", w=_words, u=_uuid), _t("git@example.org:{w}/{v}.git", w=_words, v=_words),
        _t("http://localhost:8080/{w}?tokens=12345", w=_words), _t("https://cdn.example.org/{w}@1.2.3/dist/{h}.js", w=_words, h=_hex(20)),
        _t("https://docs.example.org/{w}#password-reset-v2", w=_words), _t("postgres://${{USER}}:${{PASSWORD}}@{w}:5432/db", w=_words),
        _t("ssh://git@example.org:2222/{w}.git", w=_words), _t("s3://{w}/keys/2026/{h}.parquet", w=_words, h=_hex(16)),
    ],
    "settings": [
        _t("password: ${{{w}}}", w=lambda r: _words(r).upper()), _t("token: {{{{ .Values.{w}.token2 }}}}", w=_words),
        _t("api_key: <your {w} key>", w=_words), _t("PASSWORD=changeme1  # {w}", w=_words), _t('password = "********"  # {w}', w=_words),
        _t("token_endpoint: https://{w}.example.org/token2", w=_words), _t("max_tokens: 4096  # {w}", w=_words),
        _t("secret_rotation: 90d  # {w}", w=_words), _t("key_type: ed25519 # {w}", w=_words), _t("auth_method = scram-sha-256 # {w}", w=_words),
        _t("ssl_key: {w}.pem", w=_words), _t("token_ttl=3600s;{w}", w=_words), _t("sort_key = created_at2 # {w}", w=_words),
        _t("level=info token_type=bearer2 scope={w} tokens=1234", w=_words), _t("secret={w}-tls-2 namespace={w}", w=lambda r: _words(r, "-")),
        _t("user={w} password=${w}_password2 dbname={w}", w=_words), _t("api_key={w}_api_key2 sort_key={w}2 page=3", w=_words),
        _t("<input type=password name={w} id={w}Password2>", w=_words), _t("token={w}.token2 user=user2", w=_words),
        _t('"password": "{p}"', p=lambda r: r.choice(["Passwort", "Contraseña", "Mot de passe", "Senha", "Wachtwoord"])),
        _t('"forgotPassword": "Forgot your password, {w}?"', w=_words), _t("hotkey: ctrl+shift+{w}", w=lambda r: r.choice("abc123")),
    ],
    "prose": [
        _t("The password must have 12 characters, see {w} in chapter 3.", w=_words), _t("Your token expires in 3600 seconds ({w}).", w=_words),
        _t("Das Passwort ist seit 2024 im {w} gespeichert.", w=_words), _t("Le mot de passe est requis pour {w}2.", w=_words),
        _t("La contraseña es obligatoria desde 2019 en {w}.", w=_words), _t("A senha é gerada pelo {w} em 24h.", w=_words),
        _t("пароль это слово из {w}, раздел 12", w=_words), _t("密码：至少 8 位，见 {w}", w=_words),
        _t("The secret is that {w} keeps 3 keys for 20 users.", w=_words), _t("Key takeaways: {w} was 20% faster in Q3-2025.", w=_words),
        _t("Bearer of {w} tokens since 2021-03-04T05:06:07Z.", w=_words), _t("Basic authorization in {w} is described in RFC7617.", w=_words),
    ],
    "tables and logs": [
        _t("| password | string | required, 8-64 chars, {w} |", w=_words), _t("| token | `{c}` | the token |", c=_camel),
        _t("id,password,{w}_at\n1,,2026-01-02", w=_words), _t("key,value\n{w},{h}", w=_words, h=_hex(10)),
        _t("2026-11-22T10:11:12.345Z INFO token refreshed for {u}", u=_uuid), _t("[12:01:02] auth: user-{h} logged in", h=_hex(6)),
        _t("PASS src/{w}.test.ts (12.345 s)", w=_words), _t("--- PASS: Test{c} (0.01s)", c=_camel),
        _t("usage: 12345 input tokens, 678 output tokens, {w}", w=_words), _t("cookie: consent=yes; theme=dark  # {w}", w=_words),
    ],
}  # fmt: skip


_PREFIXES = (
    "api-",
    "sdk-",
    "mob-",
    "key-",
    "ext_",
    "secret_",
    "rnd_",
    "ico-",
    "xai-",
    "jina_",
    "glc_",
    "fc-",
    "pul-",
    "sk-",
    "hf_",
)
_ENDS = ("v2", "v1beta1", "eu1", "2024", "prod", "e2e", "x64", "k8s", "2024q1", "3a", "16")


def _name(r: random.Random) -> str:
    """Of a service, host, branch or file, as teams make them up: it may begin as a provider's key does."""
    prefix, join = r.choice(_PREFIXES), r.choice("-_")
    return prefix + join.join([*r.choices(_WORDS, k=r.randrange(1, 4)), *r.choices(_ENDS, k=r.randrange(1, 3))])


KINDS["names"] = [
    _name, _t("Upgrade to {n}", n=_name), _t("Running {n}...", n=_name), _t("pulled {n}\u2026", n=_name),
    _t("git checkout -b {n}", n=_name), _t("edit src/{n}", n=_name), _t("{n} (truncated)", n=_name),
    _t("pod/{n}-{h}-x2k4j", n=_name, h=_hex(10)), _t("ssh {n}", n=_name), _t("see {n}.", n=_name),
    _t("PATH /srv/{n}", n=_name), _t('"name": "{n}"', n=_name), _t("push registry.example.org/{n}", n=_name),
]  # fmt: skip


def look_alikes() -> Iterator[tuple[str, str]]:
    """(kind, text), `_MANY` of each form, the same in every run."""
    for kind, makers in KINDS.items():
        for number, make in enumerate(makers):
            source = random.Random(f"{_SEED} {kind} {number}")
            for _ in range(_MANY):
                yield kind, make(source)
