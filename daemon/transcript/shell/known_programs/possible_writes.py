"""Which paths a command may have changed, if its text does not say what became of them.

These are the files and folders that it names, or all that is in reach where they are not known. What a script or an
unknown program changes without naming it cannot be seen.
"""

from __future__ import annotations

import itertools
import re

from daemon.transcript.shell.known_programs import filters, packages
from daemon.transcript.shell.names import LIKE_FILE, READERS, RUNNERS, WRITING, words
from daemon.transcript.shell.state import Place
from daemon.transcript.shell.words import Field

_OPERANDS = words("rm rmdir unlink mv touch tee truncate shred ln fallocate dos2unix unix2dos")
"""Every operand of these may be changed."""
_LAST = words("cp install rsync scp")
"""Only the last operand of these is written, or what ``-t`` names."""
_HERE, _UNKNOWN = Field("."), Field("", exact=False)
_FORMATTERS = {
    "black": "", "isort": "", "autopep8": "-i|--in-place", "yapf": "-i|--in-place", "ruff": "format|--fix.*",
    "prettier": "-w|--write", "eslint": "--fix.*", "biome": "--write|--apply.*|format|--fix", "gofmt": "-\\w*w\\w*",
    "goimports": "-\\w*w\\w*", "rustfmt": "", "clang-format": "-i", "shfmt": "-\\w*w\\w*", "stylua": "",
    "dprint": "fmt",
    "autoflake": "-i|--in-place", "pyupgrade": "", "rubocop": "-a|-A|--auto.*",
    "stylelint": "--fix", "djlint": "--reformat",
    "standard": "--fix", "xo": "--fix", "oxlint": "--fix.*",
}  # fmt: skip
"""Programs that rewrite what they are given, or the working directory, when one of their words is like this."""
_FORMAT_WORDS = {
    "cargo": words("fmt fix"),
    "go": words("fmt fix generate"),
    "terraform": words("fmt"),
    "deno": words("fmt"),
}
_SUBCOMMANDS = words("format check fmt fix")
_RUN_BY = words("npx bunx pnpx uvx pipx")
_GIT_WRITING = words(
    "checkout restore stash reset pull merge rebase apply am clean switch revert cherry-pick rm mv bisect submodule "
    "worktree sparse-checkout read-tree checkout-index clone filter-branch lfs"
)
_GIT_LOOKING = words(
    "status log diff show add stage commit push fetch branch tag remote config rev-parse rev-list ls-files ls- "
    "tree ls-remote cat-file describe blame annotate shortlog reflog init grep symbolic-ref for-each-ref name-rev "
    "merge-base version count-objects hash-object check-ignore check-attr write-tree update-index update-ref "
    "commit-tree gc prune notes var help fsck whatchanged cherry range-diff diff-tree diff-index diff-files show- "
    "ref show-branch stripspace merge-tree mktree archive bundle request-pull maintenance pack-refs repack "
    "interpret-trailers credential "
)
"""Subcommands that leave the working tree alone, but for what ``--output`` and its like name."""
_GIT_SETTING = re.compile(
    r"(?:user|author|committer|color|advice|init|commit|tag|log|safe|protocol|http|gc)[.=]|core\.(?:quotepath|pager=cat)",
    re.IGNORECASE,
)
"""Settings that run no other program."""
_LIKE_BRANCH = re.compile(r"\d\.x$|/[A-Z][a-z]+file$")
_GIT_PATHS = words("checkout restore reset rm mv clean stash")
_OUTPUT = re.compile(r"(?:-o|-O|--output|--output-document|--out|--outfile|of)(?:=(.*))?")
_NO_OUTPUT = {
    "-o": words(
        "mvn mvnw ssh scp sftp sshfs mount ps pytest py.test set kubectl oc helm az gcloud flux istioctl virsh ipcs "
        "lsblk useradd usermod groupadd stat shopt"
    ),
    "-O": words("cc c++ gcc g++ clang clang++ gfortran rustc swiftc ghc dmd ocamlopt python python3 shopt"),
    "--output": words("aws az"),
}
"""Options that look like output options, and the programs in which they mean something else."""
_GIT_OUTPUT = words("archive")
"""Looking subcommands to which ``-o`` names a file; to all of them ``--output`` does."""
_VALUES = {
    "touch": words("-d --date -t -r --reference"),
    "truncate": words("-s --size -r --reference"),
    "shred": words("-n --iterations -s --size"),
    "fallocate": words("-l --length -o --offset"),
    "install": words("-m --mode -o --owner -g --group -t --target-directory"),
    "cp": words("-t --target-directory -S --suffix"),
    "mv": words("-S --suffix"),
    "ln": words("-S --suffix"),
    "rsync": words(
        "-e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from --rsync-path --chmod "
        "--chown --bwlimit --timeout --port --max-size --min-size --partial-dir --out-format --log-file-format"
    ),
    "scp": words("-c -F -i -J -l -o -P -S -D -X"),
    "git restore": words("-s --source --conflict"),
    "git clean": words("-e --exclude"),
    "git checkout": words("--conflict"),
}
"""Options whose value is the next word, which therefore is not an operand."""
_TAKES_AWAY = {
    "tar": re.compile(r"--remove-f.*"), "rsync": re.compile(r"--remove-source-files"), "zstd": re.compile(r"--rm"),
    "zip": re.compile(r"-(?=[^m]*m)\w+|--move"), "7z": re.compile(r"-sdel"),
}  # fmt: skip
"""Options of programs that then delete what they have read."""
_TAR_PLAIN = re.compile(r"-?[cdhjJklmnprStuvwxzZaCf]+|--(?:extract|create|list|exclude=.*|strip-components=\d+)")
_TARGET = re.compile(r"-[A-Za-su-z]*t(.*)|--t[a-z-]*(?:=(.*))?", re.DOTALL)
_XARGS_VALUES = words("-I -n -P -d -L -s -E -a")
_MOST_WORDS = 10_000
_XARGS_OPTION = re.compile(r"-[0rtx]+|-[InPdLsEa].*|--null|--no-run-if-empty|--", re.DOTALL)
_OUTPUT_CLUSTER = {
    "curl": re.compile(r"-[#0-46BGILMNSafgijklnpqsv]*o(.*)", re.DOTALL),
    "wget": re.compile(r"-[A-Za-z]*O(.*)", re.DOTALL),
}
_CURL_NAMED = re.compile(
    r"-[#0-46BGILMNSafgijklnpqsv]*[OJcDK].*|--(?:remote|cookie-jar|dump|trace|config|output-dir).*", re.DOTALL
)


KNOWN = frozenset({*_OPERANDS, *_LAST, *_FORMATTERS, *_FORMAT_WORDS, *filters.KNOWN})
"""Programs for which `names` returns everything that they may change."""


def names(verb: str, fields: list[Field], place: Place) -> list[str]:
    """Absolute paths that a command with these arguments may have changed; in order, each once."""
    if verb in _RUN_BY:
        plain = [at for at, field in enumerate(fields) if not field.text.startswith("-")]
        if not plain:
            return []
        return names(fields[plain[0]].text.rpartition("/")[2], fields[plain[0] + 1 :], place)
    chosen = _chosen(verb, fields, place)
    if chosen is None:
        return place.reachable
    if verb in ("mv", "cp", "ln", "install") and any(
        re.match(r"-[A-Za-su-z]*b|--backup", field.text) for field in fields
    ):
        chosen = [*chosen, *(Field(f"{field.text}~", field.exact) for field in chosen)]  # the copy it keeps
    return list(dict.fromkeys(path for field in chosen for path in place.around(field)))


def _chosen(verb: str, fields: list[Field], place: Place) -> list[Field] | None:  # noqa: C901, PLR0911, PLR0912 - kinds
    """The words that are known to be files it may change; None: anything."""
    operands = _operands(verb, fields)
    changed = packages.changed(verb, fields)
    if changed:
        return changed
    if verb in filters.KNOWN:
        return filters.written(verb, fields)
    if verb in _TAKES_AWAY and any(_TAKES_AWAY[verb].fullmatch(field.text) for field in fields):
        return None
    if verb == "git":
        return _git(fields)
    if verb == "find":
        return _find(fields, place)
    if verb in _OUTPUT_CLUSTER:
        return _downloaded(verb, fields)
    if verb in ("xargs", "parallel"):
        return _xargs(verb, fields, place)
    if verb in _FORMATTERS:
        return _formatter(verb, fields, operands)
    if verb in _FORMAT_WORDS:
        return None if operands and operands[0].text in _FORMAT_WORDS[verb] else _outputs(verb, fields)
    if verb in _OPERANDS:
        return [*operands, *_target(verb, fields)]
    if verb in _LAST:
        return _target(verb, fields) or operands[-1:]
    if verb in ("patch", "eval", "tar", "unzip", "cpio", "7z"):
        return _unpacked(verb, fields)
    if verb in WRITING and (verb != "perl" or any(WRITING[verb].fullmatch(field.text) for field in fields)):
        return _in_place(verb, fields, operands)
    if verb == "xxd":
        return operands[1:]  # what they read, then what they write
    if verb in READERS or verb in ("pip", "pip3"):
        return []
    return [*_outputs(verb, fields), *_files(verb, fields, place)]


def _operands(verb: str, fields: list[Field]) -> list[Field]:
    """The words that are neither options nor values of the program's known options."""
    valued = _VALUES.get(verb, frozenset())
    operands: list[Field] = []
    remaining = iter(fields)
    for field in remaining:
        if field.exact and field.text == "--":
            return [*operands, *remaining]
        if field.exact and field.text in valued:
            next(remaining, None)
        elif not field.text.startswith("-"):
            operands.append(field)
    return operands


def _files(verb: str, fields: list[Field], place: Place) -> list[Field]:
    """What an unknown program names: words with a slash or a suffix, but not the program that it runs.

    A folder that holds the working directory is given to say where, not to change it.
    """
    operands = _operands(verb, fields)
    if verb == "perl":  # mostly a filter: what it changes in its folder is seen from its program
        return [field for field in operands if field.text.startswith("../")]
    reads_program = any(field.text in ("-", "-s") for field in fields)  # from its standard input
    candidates = operands[1:] if verb in RUNNERS and not reads_program else operands
    likely = [f for f in candidates if verb != "pytest" and not re.search(r"://|[=\n]", f.text)]
    named = [f for f in likely if "/" in f.text or (f.exact and LIKE_FILE.fullmatch(f.text))]
    return [f for f in named if not (place.known and any(map(place.is_within, place.around(f))))]


def _outputs(verb: str, fields: list[Field]) -> list[Field]:
    """What options name as written. One that another option follows has no value: it means something else."""
    outputs = []
    for field, after in itertools.pairwise([*fields, Field("-")]):
        option = _OUTPUT.fullmatch(field.text)
        if option is None or verb in _NO_OUTPUT.get(field.text.partition("=")[0], ()):
            continue
        if option[1] or (option[1] is not None and not field.exact):
            outputs.append(Field(option[1], field.exact))
        elif field.exact and field.text != "of" and not after.text.startswith("-"):
            outputs.append(after)
    return outputs


def _downloaded(verb: str, fields: list[Field]) -> list[Field] | None:
    if verb == "curl" and any(_CURL_NAMED.fullmatch(field.text) for field in fields):
        return None
    outputs = _outputs(verb, fields)
    for at, field in enumerate(fields):
        option = _OUTPUT_CLUSTER[verb].fullmatch(field.text)
        if option and not _OUTPUT.fullmatch(field.text):
            outputs += [Field(option[1], field.exact)] if option[1] else fields[at + 1 : at + 2]
    return [field for field in outputs if field.text != "-"]


def _target(verb: str, fields: list[Field]) -> list[Field]:
    targets = []
    for field, after in itertools.pairwise([*fields, _UNKNOWN]):
        option = _TARGET.fullmatch(field.text) if verb in ("cp", "mv", "ln", "install") else None
        if option:
            value = option[1] or option[2]
            targets.append(Field(value, field.exact) if value else after)
    return targets


def _formatter(verb: str, fields: list[Field], operands: list[Field]) -> list[Field] | None:
    pattern = _FORMATTERS[verb]
    texts = [field.text for field in fields]
    if {"--check", "--diff", "--version", "--help"} & set(texts) and "--fix" not in texts:
        return []
    if pattern and not any(re.fullmatch(pattern, text) for text in texts):
        return []
    files = operands[1:] if operands and operands[0].text in _SUBCOMMANDS else operands
    return files or [_HERE]


def _in_place(verb: str, fields: list[Field], operands: list[Field]) -> list[Field] | None:
    texts = [field.text for field in fields]
    if not any(WRITING[verb].fullmatch(text) for text in texts):
        return []
    suffixes = [match[1] for text in texts if verb == "perl" and (match := re.fullmatch(r"-\w*?i([^\w].*|\w+)", text))]
    if any("*" in suffix or "/" in suffix for suffix in suffixes):
        return None
    scripts = {at + 1 for at, text in enumerate(texts) if re.fullmatch(r"-[A-Za-z]*[ef]|--expression|--file", text)}
    if scripts or any(text.startswith("--expression=") for text in texts):
        operands = [f for at, f in enumerate(fields) if at not in scripts and not f.text.startswith("-")]
    else:
        operands = operands[1:]
    return [*operands, *(Field(operand.text + suffix, operand.exact) for operand in operands for suffix in suffixes)]


def _find(fields: list[Field], place: Place) -> list[Field] | None:
    options = len(list(itertools.takewhile(lambda field: re.fullmatch(r"-[HLP]|-O\d", field.text), fields)))
    after = next((at for at, f in enumerate(fields) if at >= options and f.text[:1] in ("-", "(", "!")), len(fields))
    starts = fields[options:after] or [_HERE]
    if len(fields) * len(starts) > _MOST_WORDS or any(re.match(r"--|-D|-files0", f.text) for f in fields[: after + 1]):
        return None
    changed: list[Field] = []
    for at, field in enumerate(fields[after:], after + 1):
        if field.text == "-delete":
            changed += starts
        elif re.fullmatch(r"-fprint.*|-fls", field.text):
            changed += fields[at : at + 1]
        elif re.fullmatch(r"-(?:exec|ok)(?:dir)?", field.text):
            end = next((end for end, f in enumerate(fields[at:], at) if f.exact and f.text in (";", "+")), len(fields))
            runs = [_started(fields[at:end], start, "{}", place) for start in starts]
            ran = None if None in runs else [each for run in runs for each in run or ()]
            if ran is None or (field.text.endswith("dir") and any(each not in starts for each in ran)):
                return None
            changed += ran
    return changed


def _xargs(verb: str, fields: list[Field], place: Place) -> list[Field] | None:
    remaining = fields[::-1]
    token = "{" if verb == "parallel" and any("{" in field.text for field in fields) else ""
    while remaining and remaining[-1].text.startswith("-"):
        option = remaining.pop()
        if verb != "xargs" or not _XARGS_OPTION.fullmatch(option.text):
            return None
        value = remaining.pop().text if option.text in _XARGS_VALUES and remaining else option.text[2:]
        token = value if option.text.startswith("-I") else token
    command = list(itertools.takewhile(lambda field: not field.text.startswith(":::"), remaining[::-1]))
    if verb == "parallel" and (not command or any(re.search(r"[^\w./{}:=,+@%-]", field.text) for field in command)):
        return None  # a shell reads it
    return _started(command, _UNKNOWN, token, place) if command else []


def _started(command: list[Field], given: Field, token: str, place: Place) -> list[Field] | None:
    """What a started program may change, with `given` for each `token`, or at the end; None: anything."""
    verb, fields = (command[0].text.rpartition("/")[2] if command else ""), command[1:]
    if token and verb in READERS - KNOWN - {"env", "xxd"}:
        return []
    if any(token in field.text and token != field.text for field in fields if token):
        return None  # a part of an option, or of a program
    fields = [given if token == field.text else field for field in fields] if token else [*fields, given, given]
    is_known = verb in READERS or verb in KNOWN or verb in ("git", "xxd")
    is_known = is_known or (verb == "perl" and any(WRITING[verb].fullmatch(field.text) for field in fields))
    return _chosen(verb, fields, place) if is_known and verb != "env" else None


def _unpacked(verb: str, fields: list[Field]) -> list[Field] | None:
    texts = [field.text for field in fields]
    if verb == "tar":
        options = [text for at, text in enumerate(texts) if not at or text.startswith("-")]
        if not all(_TAR_PLAIN.fullmatch(text) for text in options):
            return None
        extracts = any("x" in text and not text.startswith("--e") for text in options) or "--extract" in options
        letter = "C" if extracts else "f"
        values = [after for f, after in itertools.pairwise(fields) if f.text in options and f.text[-1:] == letter]
        return values or ([_HERE] if extracts else [])
    if verb == "unzip":
        return [fields[at + 1] for at, t in enumerate(texts[:-1]) if t == "-d"] or [_HERE]
    if verb == "patch" and not any(text.startswith(("-p", "-i", "--", "-d")) for text in texts):
        return [field for field in fields if not field.text.startswith("-")][:1] or [_HERE]
    return None


def _git(fields: list[Field]) -> list[Field] | None:  # noqa: PLR0911 - one way out for every kind
    at = 0
    while at < len(fields) and fields[at].text.startswith("-"):
        at += 2 if fields[at].text in ("-C", "-c", "--git-dir", "--work-tree") else 1
    if at >= len(fields):
        return []
    command, arguments = fields[at].text, fields[at + 1 :]
    texts = [field.text for field in arguments]
    if any(
        before.text == "-c" and not _GIT_SETTING.match(setting.text)
        for before, setting in itertools.pairwise(fields[:at])
    ):
        return None
    if command not in _GIT_WRITING:
        return _git_outputs(command, arguments) if command in _GIT_LOOKING else None
    if "--cached" in texts or "--dry-run" in texts or _is_harmless(command, texts):
        return []
    folders = [value for option, value in itertools.pairwise(fields[:at]) if option.text in ("-C", "--work-tree")]
    if folders:
        return [*folders, _UNKNOWN]  # the repository may begin above
    if command not in _GIT_PATHS:
        return None
    return _pathspecs(command, arguments, texts)


def _git_outputs(command: str, arguments: list[Field]) -> list[Field]:
    if command == "config":
        named = [after for before, after in itertools.pairwise(arguments) if before.text in ("-f", "--file")]
        return named or [Field(f.text[7:], f.exact) for f in arguments if f.text.startswith("--file=")]
    if command == "bundle":
        return [f for f in arguments if not f.text.startswith("-")][1:2] if arguments[:1] == [Field("create")] else []
    return _outputs(
        "git", arguments if command in _GIT_OUTPUT else [field for field in arguments if field.text not in ("-o", "-O")]
    )


def _is_harmless(command: str, texts: list[str]) -> bool:
    head = texts[0] if texts else ""
    if command == "reset":
        return not {"--hard", "--merge", "--keep"} & set(texts)
    if command in ("stash", "worktree", "submodule", "bisect", "lfs", "sparse-checkout"):
        return head in ("list", "show", "drop", "clear", "status", "log")
    if command == "checkout":
        return head in ("-b", "-B", "--orphan") and len(texts) == 2
    if command == "switch":
        return head in ("-c", "-C", "--create") and len(texts) == 2
    writes = any(re.fullmatch(r"--worktree|-[A-Za-z]*W[A-Za-z]*", text) for text in texts)
    return command == "restore" and "--staged" in texts and not writes


def _pathspecs(command: str, arguments: list[Field], texts: list[str]) -> list[Field] | None:
    if "--" in texts:
        return [_pathspec(field) for field in arguments[texts.index("--") + 1 :]] or None
    operands = _operands(f"git {command}", arguments)
    if command in ("rm", "mv", "restore"):
        return [_pathspec(field) for field in operands] or None
    if command == "clean":
        return [_pathspec(field) for field in operands] or [_HERE]
    # Without "--" git takes a name for a branch first; one with a suffix is far more likely a file.
    likely = [f for f in operands if f.exact and LIKE_FILE.fullmatch(f.text) and not _LIKE_BRANCH.search(f.text)]
    return likely if command == "checkout" and likely and len(likely) == len(operands) else None


def _pathspec(field: Field) -> Field:
    """The path that it names, or where what it means begins; after a colon git reads it in its own way."""
    head = re.split(r"[*?\[]", field.text)[0]
    if head == field.text and not head.startswith(":"):
        return field
    return Field("" if head.startswith(":") else head or "./", exact=False)


def is_formatter(verb: str) -> bool:
    """Whether it is known to change what it is given, and nothing else."""
    return verb in _FORMATTERS
