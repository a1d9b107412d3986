"""What a shell call's record proves of files: a table of commands, and commands made to break a reader."""

from __future__ import annotations

import posixpath
import time
from typing import Any

import pytest

from daemon.model import FileEdit, Part
from daemon.transcript import shell
from daemon.transcript.tool_calls import Call

CWD = "/home/dev/w"


def edits(
    command: str, code: object = 0, output: str = "", status: str = "completed", **metadata: Any
) -> list[FileEdit]:
    told = {"exit": code, **metadata} if code != "absent" else metadata
    part = Part("prt_1", "msg_1", "ses_1", "tool", {}, b"")
    state = {"output": output}
    return shell.edits(Call(part, "bash", status, {"command": command}, state, told, 1, 2, CWD), "1.18.33")


def relative(path: str) -> str:
    return "." if path == CWD else path.removeprefix(CWD + "/")


def shown(edit: FileEdit) -> str:
    """Operation, -r for recursive, path, content; for a move or copy "-> other", then / for into, ? for either."""
    path = posixpath.join(edit.path, edit.launch.folder).rstrip("/") if edit.launch else edit.path
    text = edit.operation.value + (" -r" if edit.recursive else "") + " " + relative(path)
    text += "" if edit.content is None else f" {edit.content!r}"
    return text + (f" -> {relative(edit.other)}" + {True: "/", False: "", None: "?"}[edit.into] if edit.other else "")


_LINKED = ["unclear a", "unclear b", "unclear b/a"]
_DEEPER = ["unclear a", "unclear d/new", "unclear d/new/a", "unclear d/a"]
_AGAIN = ["unclear d/new", "unclear a", "unclear d/new/a", "unclear d/a"]

CASES: list[tuple[str, object, str, list[str]]] = [
    ("echo x > a.txt", 0, "", ["write a.txt 'x\\n'"]),
    ("echo -n x >> a.txt", 0, "", ["append a.txt 'x'"]),
    ("echo -e 'a\\tb' > a", 0, "", ["write a 'a\\tb\\n'"]),
    ("echo -E 'a\\tb' > a", 0, "", ["write a 'a\\\\tb\\n'"]),
    ("echo -ne 'x\\c y' > a", 0, "", ["write a 'x'"]),
    ("echo '-nx' y > a", 0, "", ["write a '-nx y\\n'"]),
    ('echo "a $HOME" > a', 0, "", ["unclear a"]),
    ("echo $(date) > a", 0, "", ["unclear a"]),
    ("echo a > b c", 0, "", ["write b 'a c\\n'"]),
    ("printf 'a\\n%s-%d%%' x 5 > a", 0, "", ["write a 'a\\nx-5%'"]),
    ("printf '%s\\n' a b c >> a", 0, "", ["append a 'a\\nb\\nc\\n'"]),
    ("printf '%5s' a > a", 0, "", ["unclear a"]),
    ('printf "$X" > a', 0, "", ["unclear a"]),
    (": > a", 0, "", ["write a ''"]),
    ("> a", 0, "", ["write a ''"]),
    (">> a", 0, "", ["append a ''"]),
    ("true > a", 0, "", ["write a ''"]),
    ("cat <<< hi > a", 0, "", ["write a 'hi\\n'"]),
    ("tee a b <<< hi", 0, "", ["write a 'hi\\n'", "write b 'hi\\n'"]),
    ("tee -a a <<< 'x y'", 0, "", ["append a 'x y\\n'"]),
    ("echo x | tee a > /dev/null", 0, "", ["write a 'x\\n'"]),
    ("echo x | sudo tee -a /etc/hosts", 0, "", ["append /etc/hosts 'x\\n'"]),
    ("ls | tee a", 0, "", ["unclear a"]),
    ("echo x | cat > a", 0, "", ["write a 'x\\n'"]),
    ("make 2>&1 | tee build.log", 0, "", ["run . -> Makefile", "unclear build.log"]),
    ("cd d && ls 2>&1 | cat\nrm a", 0, "", ["delete d/a"]),  # the grammar takes the whole chain for what is piped
    ("cd d && ls > f | cat && rm a", 0, "", ["unclear d/f", "delete d/a"]),
    ("cd d && ls 2>&1 | cat > b", 0, "", ["unclear d/b"]),
    ("ls | cat && cd d && ls 2>&1 | cat; rm a", 0, "", ["delete d/a"]),
    ("rm a", 0, "", ["delete a"]),
    ("rm -rf a b", 0, "", ["delete -r a", "delete -r b"]),
    ("rm -f 'it is'", 0, "", ["delete it is"]),
    ("rm -i a", 0, "", ["unclear a"]),
    ("rm *.pyc", 0, "", ["unclear ."]),
    ("rm -rf build/*.o", 0, "", ["unclear build"]),
    ("rm $X", 0, "", ["unclear ."]),
    ("rm -rf .", 0, "", ["unclear ."]),
    ("rm -- -f", 0, "", ["delete -f"]),
    ("\\rm a", 0, "", ["delete a"]),
    ("/bin/rm a", 0, "", ["delete a"]),
    ("command rm a", 0, "", ["delete a"]),
    ("sudo rm a", 0, "", ["delete a"]),
    ("rmdir d", 0, "", ["delete -r d"]),
    ("unlink a", 0, "", ["delete a"]),
    ("mv a b", 0, "", ["move a -> b?"]),
    ("mv a b d", 0, "", ["move a -> d/", "move b -> d/"]),
    ("mv -t d a b", 0, "", ["move a -> d/", "move b -> d/"]),
    ("mv -T a b", 0, "", ["move a -> b"]),
    ("mv a d/", 0, "", ["move a -> d?"]),
    ("mkdir d && mv a d", 0, "", ["folder d", "move a -> d/"]),
    ("mv -n a b", 0, "", ["unclear a", "unclear b"]),
    ("mv --backup a b", 0, "", ["unclear a", "unclear b", "unclear a~", "unclear b~"]),
    ("cp a b", 0, "", ["copy a -> b?"]),
    ("cp a d/", 0, "", ["copy a -> d/"]),
    ("cp -r a b", 0, "", ["copy -r a -> b?"]),
    ("cp -u a b", 0, "", ["unclear b"]),
    ("cp a{,.bak}", 0, "", ["copy a -> a.bak?"]),
    ("cp -a x/. y", 0, "", ["unclear y"]),
    ("mkdir -p a/b c", 0, "", ["folder a/b", "folder c"]),
    ("touch a b", 0, "", ["touch a", "touch b"]),
    ("touch -c a", 0, "", []),
    ("export G=a\n\\rm a", 0, "", ["unclear a", "unclear ."]),  # the grammar misreads it
    ("cat <<EOF > b.txt\nEOF\n\\rm a", 0, "", ["unclear b.txt", "unclear a", "unclear ."]),
    ("! { bash -c 'echo x > new'\n}", 0, "", ["unclear .", "run ."]),  # here too
    ("time { sh run.sh; }", 0, "", ["unclear run.sh", "run ."]),
    ("ln -s a b", 0, "", ["unclear a", "unclear b", "unclear b/a"]),
    ("ln -s a b; echo x > b", 0, "", [*_LINKED, "unclear b", "unclear a", "unclear b/a"]),
    ("ln -s a d/new && echo x > d/new", 0, "", [*_DEEPER, *_AGAIN]),  # writes to d/a: links start from their folder
    ("ln -s a b; echo x > c", 0, "", [*_LINKED, "write c 'x\\n'"]),
    ("truncate -s 0 a", 0, "", ["write a ''"]),
    ("truncate -s 5 a", 0, "", ["unclear a"]),
    ("git mv a b", 0, "", ["move a -> b?"]),
    ("git rm a.py", 0, "", ["delete a.py"]),
    ("git rm -r src", 0, "", ["unclear src"]),
    ("git rm --cached a", 0, "", []),
    ("git checkout -- a b", 0, "", ["unclear a", "unclear b"]),
    ("git checkout .", 0, "", ["unclear ."]),
    ("git checkout -b new", 0, "", []),
    ("git checkout app.py", 0, "", ["unclear app.py"]),
    ("git switch main", 0, "", ["unclear ."]),
    ("git stash", 0, "", ["unclear ."]),
    ("git stash list", 0, "", []),
    ("git reset --hard", 0, "", ["unclear ."]),
    ("git reset HEAD a", 0, "", []),
    ("git clean -fd", 0, "", ["unclear ."]),
    ("git restore a.py", 0, "", ["unclear a.py"]),
    ("git pull", 0, "", ["unclear ."]),
    ("git commit -am x", 0, "", []),
    ("git diff > p.patch", 0, "", ["unclear p.patch"]),
    # A program that does not exist changes nothing.
    ("sqlite3x tea.db 'select 1'", 127, "bash: line 1: sqlite3x: command not found\n", []),
    ("sqlite3x tea.db", 127, "/bin/sh: 1: sqlite3x: not found", []),
    ("sqlite3x tea.db", 127, "zsh:1: command not found: sqlite3x", []),
    ("sqlite3x tea.db", 127, "sh: 1: other: not found", ["unclear tea.db"]),
    ("sqlite3x tea.db", 1, "bash: sqlite3x: command not found", ["unclear tea.db"]),
    ("sqlite3x tea.db > out", 127, "bash: sqlite3x: command not found", ["unclear out", "unclear tea.db"]),
    ("touch a; sqlite3x tea.db", 127, "bash: sqlite3x: command not found", ["unclear a", "unclear tea.db"]),
    # An option, or the value of one, is no path.
    ("git commit -q -m x", 0, "", []),
    ("git commit -q -o a.py -m x", 0, "", []),
    ("git reset -q --soft HEAD~1", 0, "", []),
    ("git push -q -o ci.skip", 0, "", []),
    ("git ls-files -o src", 0, "", []),
    ("git archive -o a.tar HEAD", 0, "", ["unclear a.tar"]),
    ("git diff --output=p.patch", 0, "", ["unclear p.patch"]),
    ("git checkout -q -- a.py", 0, "", ["unclear a.py"]),
    ("git restore -q --source HEAD~1 a.py", 0, "", ["unclear a.py"]),
    ("git restore -s main a.py", 0, "", ["unclear a.py"]),
    ("git clean -fdx -e keep.txt", 0, "", ["unclear ."]),
    ("git clean -fdq build", 0, "", ["unclear build"]),
    ("mvn -o -q test", 0, "", []),
    ("mvn -o package", 0, "", ["run ."]),
    ("gcc -O main.c -o main", 0, "", ["unclear main", "unclear main.c"]),
    ("prog -o -v", 0, "", []),
    ("prog -I$LIB/include", 0, "", []),
    ("wget -q -O - https://example.org/a", 0, "", []),
    ("wget -q -O page https://example.org/a", 0, "", ["unclear page"]),
    ("kubectl get pods -o yaml", 0, "", []),
    ("ssh -o BatchMode=yes host true", 0, "", []),
    ("rsync -a src/ dst/ --exclude node_modules", 0, "", ["unclear dst"]),
    ("cp -t lib $SOURCES", 0, "", ["unclear lib"]),
    ("shred -n 3 $F a.key", 0, "", ["unclear .", "unclear a.key"]),
    ("rm -v $X -- -q", 1, "", ["unclear .", "unclear -q"]),
    ("git apply p.patch", 0, "", ["unclear ."]),
    ("cd d && git apply p.patch", 0, "", ["unclear d", "unclear ."]),
    ("cd d && git restore :/a", 0, "", ["unclear d", "unclear ."]),
    ("git -C d checkout -q main", 0, "", ["unclear d", "unclear ."]),
    ("git config -f d/conf x.y z", 0, "", ["unclear d/conf"]),
    ("cd d && rm $F", 0, "", ["unclear d", "unclear ."]),
    ("cd d && rm *.pyc", 0, "", ["unclear d"]),
    ("cd d && rm ../*.pyc", 0, "", ["unclear ."]),
    ("cd d && rm */../../*.pyc", 0, "", ["unclear d", "unclear ."]),
    ("cd d && for f in *.py; do sed -i s/a/b/ $f; done", 0, "", ["unclear d"]),
    ("cd d && for f in $(ls); do sed -i s/a/b/ $f; done", 0, "", ["unclear d", "unclear ."]),
    ("for f in a b; do for g in c d; do rm $f/$g; done; done", 0, "", ["unclear a", "unclear b"]),
    ("cd d && black", 0, "", ["unclear d"]),
    ("find d -exec sed -i s/a/b/ {} +", 0, "", ["unclear d"]),
    ("find d -exec sed -n 1p {} +", 0, "", []),
    ("find d -exec cp {} e/ \\;", 0, "", ["unclear e"]),
    ("find d -exec sh -c 'rm x' \\;", 0, "", ["run .", "unclear ."]),
    ("find d -execdir cp x y \\;", 0, "", ["unclear ."]),
    ("find -L d e -delete", 0, "", ["unclear d", "unclear e"]),
    ("find d -name x -fprint list", 0, "", ["unclear list"]),
    ("ls | xargs sed -i s/a/b/", 0, "", ["unclear ."]),
    ("ls | xargs sed -n 1p", 0, "", []),
    ("ls | xargs -I{} cp {} e/", 0, "", ["unclear e"]),
    ("ls | xargs -n1 sh -c 'rm $0'", 0, "", ["run .", "unclear ."]),
    ("parallel rm ::: a b", 0, "", ["unclear ."]),
    ("parallel wc -l ::: a b", 0, "", []),
    ("parallel < commands", 0, "", ["unclear ."]),
    ("wget -qO- https://example.org/a", 0, "", []),
    ("cd d && perl -ne 'print if /x/' x.py ../y", 0, "", ["run d 'print if /x/'", "unclear y"]),
    ("cp -l a b", 0, "", ["unclear b", "unclear b/a", "unclear a"]),
    ("tar czf t.tgz a --remove-files", 0, "", ["unclear ."]),
    ("tar xf t.tar --directory=..", 0, "", ["unclear ."]),
    ("cd d && tar xzf t.tgz", 0, "", ["unclear d"]),
    ("tar -xzf t.tgz -C e", 0, "", ["unclear e"]),
    ("tar czf t.tgz src --exclude=x", 0, "", ["unclear t.tgz"]),
    ("find d e -exec cp x {} +", 0, "", ["unclear d", "unclear e"]),
    ("find d -exec awk 'BEGIN { print > \"{}\" }' \\;", 0, "", ["unclear ."]),
    ("find d -exec env rm {} \\;", 0, "", ["unclear ."]),
    ("find d -exec xxd -r x {} \\;", 0, "", ["unclear d"]),
    ("ls | xargs -I{} env rm {}", 0, "", ["unclear ."]),
    ("find -- d -delete", 0, "", ["unclear ."]),
    ("ls | xargs uniq", 0, "", ["unclear ."]),
    ("ls | xargs -I{} sort --output={} x", 0, "", ["unclear ."]),
    ("cp -tlib a", 0, "", ["unclear lib"]),
    ("mv --target-directory=lib z", 0, "", ["unclear z", "unclear lib"]),
    ("git restore --staged -W a.py", 0, "", ["unclear a.py"]),
    ("git checkout -q release-1.x", 0, "", ["unclear ."]),
    ("git bundle create -q b.bundle main", 0, "", ["unclear b.bundle"]),
    ("cd d; for n in 1 2 3 4 5 6 7 8 9 .; do rm -f .$n/a; done", 0, "", ["unclear d", "unclear ."]),
    ("cd d; for n in 1 2 3 4 5 6 7 8 9 '. ..'; do rm -f $n/a; done", 0, "", ["unclear d", "unclear ."]),
    ("cd d && echo x > a", 0, "", ["write d/a 'x\\n'"]),
    ("cd d; rm a; cd ..; rm b", 0, "", ["delete d/a", "delete b"]),
    ("cd /tmp && rm a", 0, "", ["delete /tmp/a"]),
    ("(cd d; rm a); rm b", 0, "", ["delete d/a", "delete b"]),
    ("cd $X && rm a", 0, "", ["unclear ."]),
    ("cd -; rm a", 0, "", ["unclear ."]),
    ("pushd d; rm a", 0, "", ["unclear ."]),
    ("cd d || exit 1; rm a", 0, "", ["delete d/a"]),
    ("F=a; echo x > $F", 0, "", ["write a 'x\\n'"]),
    ('F=a; rm "$F.bak"', 0, "", ["delete a.bak"]),
    ("F=$(pwd); rm $F/a", 0, "", ["delete a"]),
    ("F=$(ls); rm $F/a", 0, "", ["unclear ."]),
    ("F=a; if true; then F=b; fi; rm $F", 0, "", ["unclear ."]),
    ("export F=a; rm ${F}", 0, "", ["delete a"]),
    ("T=$(mktemp); echo x > $T", 0, "", []),
    ("set -e; false-looking; rm a", 0, "", ["delete a"]),
    ("set -e; grep q x; rm a", 0, "", ["delete a"]),
    ("rm a || true", 0, "", ["delete a"]),
    ("rm a || rm b", 0, "", ["delete a", "unclear b"]),
    ("true && rm a; ls", 0, "", ["delete a"]),
    ("grep -q x f && rm a; ls", 0, "", ["unclear a"]),
    ("rm a; rm b", 0, "", ["delete a", "delete b"]),
    ("rm a 2>/dev/null; rm b", 0, "", ["unclear a", "delete b"]),
    ("{ rm a; rm b; }", 0, "", ["delete a", "delete b"]),
    ("{ echo a; echo b; } > c", 0, "", ["unclear c"]),
    ("rm a &", 0, "", ["unclear a"]),
    ("! rm a", 0, "", ["unclear a"]),
    ("if x; then rm a; fi", 0, "", ["unclear a"]),
    ("for f in a b; do rm $f; done", 0, "", ["unclear a", "unclear b"]),
    ("for f in *.c; do gcc $f > $f.o; done", 0, "", ["unclear ."]),
    ('while read f; do rm "$f"; done < list', 0, "", ["unclear ."]),
    ("case x in a) rm a;; esac", 0, "", ["unclear a"]),
    ("f() { rm a; }; f; rm b", 0, "", ["unclear a", "unclear b"]),
    ("alias rm=true; rm a", 0, "", ["unclear a"]),
    ("exit 0; rm a", 0, "", ["unclear a"]),
    ("eval rm a", 0, "", ["unclear ."]),
    ("bash -c 'rm a; echo x > b'", 0, "", ["delete a", "write b 'x\\n'"]),
    ("sh run.sh", 0, "", ["run . -> run.sh"]),
    ("sed -i s/a/b/ a.py b.py", 0, "", ["unclear a.py", "unclear b.py"]),
    ("sed -i.bak -e s/a/b/ a.py", 0, "", ["unclear a.py", "unclear a.py.bak"]),
    ("sed s/a/b/ a.py > b.py", 0, "", ["unclear b.py"]),
    ("perl -pi -e s/a/b/ a.txt", 0, "", ["run . 's/a/b/'", "unclear a.txt"]),
    ("awk -i inplace '{print}' a.txt", 0, "", ["unclear a.txt"]),
    ("sort -o a b", 0, "", ["unclear a"]),
    ("sort a > a", 0, "", ["unclear a"]),
    ("dd if=/dev/zero of=a", 0, "", ["unclear a"]),
    ("patch a < p", 0, "", ["unclear a"]),
    ("patch -p1 < p", 0, "", ["unclear ."]),
    ("black .", 0, "", ["unclear ."]),
    ("black --check .", 0, "", []),
    ("ruff format src", 0, "", ["unclear src"]),
    ("ruff check src", 0, "", []),
    ("ruff check --fix", 0, "", ["unclear ."]),
    ("prettier --write a.js", 0, "", ["unclear a.js"]),
    ("npx eslint --fix src", 0, "", ["unclear src"]),
    ("gofmt -w a.go", 0, "", ["unclear a.go"]),
    ("cargo fmt", 0, "", ["unclear ."]),
    ("find . -delete", 0, "", ["unclear ."]),
    ("find src -name x -exec rm {} +", 0, "", ["unclear src"]),
    ("find . -name x", 0, "", []),
    ("ls | xargs rm", 0, "", ["unclear ."]),
    ("ls | xargs cat", 0, "", []),
    ("curl -o out.bin http://h/x", 0, "", ["unclear out.bin"]),
    ("python x.py in.csv", 0, "", ["run . -> x.py", "unclear in.csv -> x.py"]),
    ("make", 0, "", ["run . -> Makefile"]),
    ("npm run build", 0, "", ["run . -> package.json"]),
    ("cat a > b", 0, "", ["copy a -> b"]),
    ("cat a b > c", 0, "", ["unclear c"]),
    ("cat a >> b", 0, "", ["unclear b"]),
    ("cat a > a", 0, "", ["unclear a"]),
    ("ls > /dev/null", 0, "", []),
    ("rm /dev/null", 0, "", []),
    ("echo x > /dev/shm/a; rm /dev/shm/b; rm /dev/shm", 0, "", ["write /dev/shm/a 'x\\n'", "delete /dev/shm/b"]),
    ("rm -rf /", 0, "", []),
    ("echo x > a > b", 0, "", ["unclear a", "unclear b"]),
    ("echo x > a 2>&1", 0, "", ["write a 'x\\n'"]),
    ("echo x 2> err.log", 0, "", ["unclear err.log"]),
    ("echo x &> a", 0, "", ["unclear a"]),
    ("chmod +x a.sh", 0, "", []),
    ("echo 'open", 0, "", []),
    ("if true; then", 0, "", []),
    ("cat > a <<EOF\n\n\n x\nEOF", 0, "", ["write a '\\n\\n x\\n'"]),
    ("cat <<'EOF' > a\n$x `y` \\$\nEOF\nrm b", 0, "", ["write a '$x `y` \\\\$\\n'", "delete b"]),
    ('cat > a <<EOF\n\\$x \\\\ \\` \\" \\n a\\\nb\nEOF', 0, "", ['write a \'$x \\\\ ` \\\\" \\\\n ab\\n\'']),
    ("cat > a <<EOF\n$x\nEOF", 0, "", ["unclear a"]),
    ("F=q\ncat > a <<EOF\n$F\nEOF", 0, "", ["write a 'q\\n'"]),
    ("cat > a <<-EOF\n\tx\n\t\ty\n\tEOF", 0, "", ["write a 'x\\ny\\n'"]),
    ("cat >> a << 'E 1'\nx\nE 1", 0, "", ["append a 'x\\n'"]),
    ("cat > a <<A && cat > b <<'B'\n1\nA\n2\nB", 0, "", ["write a '1\\n'", "write b '2\\n'"]),
    ("cat > a <<EOF\nunterminated", 0, "", ["unclear a", "unclear ."]),
    ("python - <<'EOF'\nopen('a.txt','w')\nEOF", 0, "", ["run . \"open('a.txt','w')\\n\""]),
    ('git commit -m "$(cat <<\'EOF\'\nrm a; it\'s\nEOF\n)"', 0, "", []),
    ("cat <<EOF | tee a\nx\nEOF", 0, "", ["write a 'x\\n'"]),
    ("echo a \\\n > b", 0, "", ["write b 'a\\n'"]),
    ("# rm a\nrm b # rm c", 0, "", ["delete b"]),
    ("rm a", 1, "", ["unclear a"]),
    ("rm a", None, "", ["unclear a"]),
    ("rm a", "absent", "", ["delete a"]),
    ("rm a", "absent", "rm: cannot remove", ["unclear a"]),
    ("python x.py && rm a", "absent", "", ["run . -> x.py", "unclear a"]),
    ("rm a && rm b", "absent", "", ["delete a", "delete b"]),
    ("rm a; rm b", 0, "rm: cannot remove", ["unclear a", "delete b"]),
    ("echo x > d/a; ls", 0, "bash: line 1: d/a: No such file or directory", ["unclear d/a"]),
    ("mv a b", 0, "mv: overwrite 'b'? ", ["unclear a", "unclear b"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "output", "expected"), CASES)
def test_a_command_proves_exactly_this(command: str, code: object, output: str, expected: list[str]) -> None:
    assert [shown(edit) for edit in edits(command, code, output)] == expected


@pytest.mark.parametrize(
    ("metadata", "status", "expected"),
    [
        ({"truncated": True}, "completed", ["unclear a", "delete b"]),
        ({"outputPath": "/x/tool_1"}, "completed", ["unclear a", "delete b"]),
        ({}, "running", ["unclear a", "unclear b"]),
        ({}, "pending", []),
        ({}, "error", []),
    ],
)
def test_a_cut_output_and_a_cut_call_prove_less(metadata: dict[str, Any], status: str, expected: list[str]) -> None:
    assert [shown(edit) for edit in edits("rm a; rm b", status=status, **metadata)] == expected


def test_an_output_too_long_to_be_looked_through_proves_nothing() -> None:
    assert [shown(edit) for edit in edits("rm a; rm b", 0, "x" * (1 << 20) + "x")] == ["unclear a", "unclear b"]


def test_the_note_is_redacted_and_no_secret_becomes_a_path() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = edits(f"export GITHUB_TOKEN={secret}; ./deploy x/{secret}")
    assert all(secret not in edit.path and secret not in edit.note for edit in found)
    assert secret not in edits(f"echo {secret} > a")[0].note


def test_here_document_text_is_kept_though_it_holds_a_secret() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert edits(f"cat > a <<'E'\nTOKEN={secret}\nE")[0].content == f"TOKEN={secret}\n"


def test_a_mac_may_have_zsh_whose_echo_reads_backslashes() -> None:
    call = Call(
        Part("p", "m", "s", "tool", {}, b""),
        "bash",
        "completed",
        {"command": "echo 'a\\tb' > a; echo b > c"},
        {},
        {"exit": 0},
        1,
        2,
        "/Users/dev/w",
    )
    assert [edit.operation.value for edit in shell.edits(call, "")] == ["unclear", "write"]


def in_workdir(command: str, workdir: str) -> list[FileEdit]:
    given = {"command": command, "workdir": workdir}
    call = Call(Part("p", "m", "s", "tool", {}, b""), "bash", "completed", given, {}, {"exit": 0}, 1, 2, CWD)
    return shell.edits(call, "")


def test_workdir_is_where_the_command_runs() -> None:
    assert [edit.path for edit in in_workdir("rm a", "sub")] == [f"{CWD}/sub/a"]


def test_what_is_unknown_may_lie_in_the_sessions_folder_too() -> None:
    assert [edit.path for edit in in_workdir("rm $(cat names)", "sub")] == [f"{CWD}/sub", CWD]
    assert [edit.path for edit in in_workdir("rm $(cat names)", "/elsewhere")] == ["/elsewhere"]
    (run,) = in_workdir("sh x.sh", "sub")
    assert (run.path, run.launch and run.launch.folder) == (CWD, "sub")


HOSTILE = {
    "open quote": "echo 'x > a",
    "nul": "echo \0 > a",
    "only operators": "&& || ;; | & > < << <<< ( ) { }",
    "deep subshells": "(" * 5000 + "rm a" + ")" * 5000,
    "deep substitutions": "echo " + "$(" * 3000 + "x" + ")" * 3000 + " > a",
    "deep groups": "{ " * 2000 + "rm a; " + "} ;" * 2000,
    "long chain": " && ".join(["true"] * 3000) + " && rm a",
    "many commands": "rm a;" * 100_000,
    "many heredocs": "cat > a <<E\nx\nE\n" * 3000,
    "open heredocs": "cat <<A\n" * 50_000,
    "big word": "echo " + "x" * 1_000_000 + " > a",
    "big quote": "echo '" + "x y\n" * 250_000 + "' > a",
    "big heredoc": "cat > a <<'E'\n" + "some line of text\n" * 200_000 + "E\n",
    "braces": "touch " + "{a,b}" * 200,
    "backslashes": "\\" * 200_000,
    "quotes": "'\"" * 100_000,
    "dollars": "$" * 100_000 + " > a",
    "surrogate": "echo \ud800 > a",
    "printf bomb": "printf " + "'" + "%s" * 3 + "'" + " a" * 20_000 + " > a",
    "nested bash": "bash -c " * 20 + "'rm a'",
    "if nest": "if a; then " * 500 + "rm a; " + "fi; " * 500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_commands_are_read_fast_and_never_raise(name: str) -> None:
    began = time.process_time()
    found = edits(HOSTILE[name])
    assert time.process_time() - began < 60
    assert all(edit.path.startswith("/") for edit in found)


def test_a_here_document_of_megabytes_is_exact() -> None:
    assert edits(HOSTILE["big heredoc"])[0].content == "some line of text\n" * 200_000
