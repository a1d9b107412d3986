"""Commands that were really run: what each is for, how it ended, and what is left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.reconstitute.facts import usage
from daemon.reconstitute.facts.session_values import CallStatus
from daemon.reconstitute.facts.shell.groups import GROUPS
from daemon.reconstitute.facts.values import Script
from tests.support.examples import examples
from tests.unit.facts.folder_facts import TARGET, call, session, turn

OK, FAILED, STOPPED, UNKNOWN = CallStatus.OK, CallStatus.FAILED, CallStatus.STOPPED, CallStatus.UNKNOWN

GROUPED = [
    ("pip install -r requirements.txt", "install"), ("python3 -m pip install flask", "install"), ("uv sync", "install"),
    ("npm ci", "install"), ("yarn", "install"), ("pnpm add -D vitest", "install"), ("bundle install", "install"),
    ("composer install", "install"), ("go mod tidy", "install"), ("cargo add serde", "install"),
    ("dotnet restore", "install"), ("mix deps.get", "install"), ("flutter pub get", "install"),
    ("sudo apt-get install -y jq", "install"), ("python -m venv .venv", "install"), ("poetry install", "install"),
    ("cargo build --release", "build"), ("go build ./...", "build"), ("npm run build", "build"), ("tsc -p .", "build"),
    ("npx tsc", "build"), ("cmake --build build", "build"), ("make", "build"), ("docker build -t x .", "build"),
    ("docker compose build", "build"), ("./gradlew assemble", "build"), ("mvn -q package", "build"),
    ("latexmk -pdf main.tex", "build"), ("hugo", "build"), ("python -m build", "build"), ("gcc -o a a.c", "build"),
    ("python app.py", "run"), ("python3 -m shop.main --port 80", "run"), ("node server.js", "run"),
    ("npm start", "run"), ("npm run dev", "run"), ("cargo run -- --help-me", "run"), ("go run .", "run"),
    ("docker compose up -d", "run"), ("docker-compose up", "run"), ("flask --app x run", "run"),
    ("uvicorn main:app --reload", "run"), ("rails server", "run"), ("./scripts/dev.sh", "run"), ("make run", "run"),
    ("python manage.py runserver", "run"), ("dotnet run", "run"), ("php artisan serve", "run"), ("./a.out 3", "run"),
    ("python -m http.server 80", "run"), ("uv run app.py", "run"), ("mix phx.server", "run"), ("deno run x.ts", "run"),
    ("pytest -q tests/test_a.py", "test"), ("python -m pytest", "test"), ("uv run pytest", "test"), ("npm test", "test"),
    ("npm t", "test"), ("npx vitest run", "test"), ("cargo test", "test"), ("go test ./...", "test"), ("tox", "test"),
    ("make test", "test"), ("just check", "test"), ("bundle exec rspec", "test"), ("./gradlew test", "test"),
    ("mvn -B verify", "test"), ("dotnet test", "test"), ("vendor/bin/phpunit", "test"), ("node --test", "test"),
    ("python -m unittest -v", "test"), ("bash run_tests.sh", "test"), ("python tests/test_x.py", "test"),
    ("ctest --test-dir build", "test"), ("swift test", "test"), ("python manage.py test", "test"), ("mix test", "test"),
    ("ruff check .", "lint"), ("npm run lint", "lint"), ("cargo clippy", "lint"), ("go vet ./...", "lint"),
    ("npx eslint .", "lint"), ("black .", "lint"), ("mypy daemon", "lint"), ("make lint", "lint"),
    ("alembic upgrade head", "migrate"), ("python manage.py migrate", "migrate"), ("rails db:migrate", "migrate"),
    ("npx prisma migrate dev", "migrate"), ("make migrate", "migrate"), ("php artisan migrate", "migrate"),
    ("./scripts/deploy.sh prod", "deploy"), ("terraform apply", "deploy"), ("kubectl apply -f k8s/", "deploy"),
    ("npm publish", "deploy"), ("fly deploy", "deploy"), ("docker push x", "deploy"), ("make deploy", "deploy"),
    ("twine upload dist/*", "deploy"), ("cargo publish", "deploy"), ("npx vercel --prod", "deploy"),
    ("sh gradlew build", "build"), ("bash ./mvnw test", "test"), ("sh gradlew jmh", "other"), ("./gradlew jmh", "other"), ("java -jar target/shop.jar", "run"),
    ("java -cp out Main", "run"), ("java -cp out ShopTest", "test"), ("sh bin/rails server", "run"),
    ("sh gradlew assembleDebug", "build"), ("./gradlew :app:bundleRelease", "build"), ("gradle clean build", "build"),
    ("sh gradlew testDebugUnitTest", "test"), ("./gradlew connectedAndroidTest", "test"), ("./gradlew lintDebug", "lint"),
    ("sh gradlew installDebug", "deploy"), ("adb install app.apk", "deploy"), ("./gradlew bootRun", "run"),
    ("./gradlew installDist", "build"), ("mvn clean install", "build"), ("./mvnw -q package", "build"),
    ("poetry run pytest", "test"), ("bundle exec rails server", "run"), ("uv run ruff check .", "lint"),
    ("docker compose exec web pytest -q", "test"), ("docker compose run --rm app python manage.py migrate", "migrate"),
    ("ansible-playbook site.yml", "deploy"), ("ansible-playbook --syntax-check site.yml", "test"),
    ("ansible-playbook -C site.yml", "test"), ("kubectl apply --dry-run=client -f x.yml", "other"),
    ("npm publish --dry-run", "other"), ("npx tsc --noEmit", "lint"), ("terraform plan", "test"),
    ("./scripts/deploy.sh --dry-run", "other"), ("make -n deploy", "other"), ("black --check .", "lint"),
    ("bash -n deploy.sh", "lint"), ("node --check server.js", "lint"), ("php -l index.php", "lint"),
    ("alembic upgrade head --dry-run", "other"), ("make pruefen", "test"), ("npm run verifica", "test"),
    ("sh tools/prüfe.sh", "test"), ("python3 kontrol.py", "test"), ("make sprawdz", "test"), ("make 検査", "test"),
    ("make frobnicate", "other"), ("npm run frobnicate", "other"),
    ("python3 -m shop.report --dry-run", "other"), ("node sync.js --dry-run", "other"), ("rake sync --dry-run", "other"),
    ("pytest --dry-run", "test"), ("cmake -S . -B build", "other"), ("cmake ..", "other"), ("cmake -B b -G Ninja", "other"),
    ("cmake --preset dev", "other"), ("cmake --build build -j2", "build"), ("./configure --prefix=/opt", "other"),
    ("sh ./configure", "other"), ("../configure", "other"), ("./autogen.sh", "other"), ("autoreconf -fi", "other"),
    ("meson setup build", "other"), ("meson compile -C build", "build"), ("ninja -C build", "build"),
    ("gn gen out", "other"), ("./waf configure", "other"), ("./waf build", "build"), ("perl Makefile.PL", "other"),
    ("cabal configure", "other"), ("qmake shop.pro", "other"), ("CC=clang cmake -S . -B b", "other"),
]  # fmt: skip


def _found(*calls, **fields):
    return usage.find(TARGET, [session(turn("do it", *calls), **fields)])


@pytest.mark.parametrize(("command", "group"), GROUPED)
def test_a_command_is_grouped_by_what_it_does(command, group):
    assert [(one.group, one.command, one.last) for one in _found(call(command))] == [(group, command, OK)]


@pytest.mark.parametrize(
    "command",
    ["ls -la", "cat app.py", "git status", "grep -r x .", "python -c 'print(1)'", "node -e 1", "echo hello", "cd src",
     "rm -rf x", "python --version", "npm --version", "cat > a.py <<'EOF'\nprint(1)\nEOF", "python3 - <<'E'\nx\nE",
     "curl localhost:80", "pip list", "pip show x", "docker ps", "npm ls", "kubectl get pods", "if (", "", "which make",
     "/usr/bin/python3 --version", "npm ci --dry-run", "sed -i s/a/b/ x", "for f in *; do pytest $f; done", "./tool --help"],
)  # fmt: skip
def test_what_only_looks_or_is_a_one_off_is_left_out(command):
    assert _found(call(command)) == ()


ENDINGS = [
    ("pytest", 0, {"pytest": OK}),
    ("pytest", 1, {"pytest": FAILED}),
    ("pytest", None, {"pytest": STOPPED}),
    ("pip install x && pytest", 0, {"pip install x": OK, "pytest": OK}),
    ("pip install x && pytest", 1, {"pip install x": UNKNOWN}),
    ("cd src && export A=1 && pytest", 2, {"pytest": FAILED}),
    ("pytest; echo done", 0, {"pytest": UNKNOWN}),
    ("npm run build; npm test", 1, {"npm run build": UNKNOWN, "npm test": FAILED}),
    ("pytest | tail -5", 0, {"pytest": UNKNOWN}),
    ("pytest 2>&1 | tee log", 1, {"pytest": UNKNOWN}),
    ("pytest || true", 0, {"pytest": UNKNOWN}),
    ("pytest > out.txt 2>&1", 1, {"pytest": FAILED}),
    ("timeout 5 python app.py", 124, {"python app.py": STOPPED}),
    ("python app.py", 143, {"python app.py": STOPPED}),
    ("python app.py & sleep 2; curl localhost", 0, {"python app.py": UNKNOWN}),
    ("nohup node server.js", 0, {"node server.js": OK}),
    ("PORT=80 node server.js", 0, {"PORT=80 node server.js": OK}),
    ("make build && ./deploy.sh", None, {"make build": UNKNOWN}),
]


@pytest.mark.parametrize(("command", "exit_", "expected"), ENDINGS)
def test_an_exit_status_is_said_only_of_the_command_it_is_of(command, exit_, expected):
    assert {one.command: one.last for one in _found(call(command, exit_))} == expected


TRACEBACK = (
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nNameError: name 'x' is not defined\n"
)
PRINTED = [
    ("python -m shop; echo exit $?", "sold\nexit 0\n", OK, None),
    ("python -m shop; echo exit $?", f"{TRACEBACK}exit 1\n", FAILED, 1),
    ('python -m shop\necho "status: $?"', "status: 3", FAILED, 3),
    ("python -m shop; echo $?", "no number", UNKNOWN, None),
    ("python -m shop; echo exit $?", "exit 124", STOPPED, None),
    ("python -m shop; echo $HOME $?", "/root 1", UNKNOWN, None),
    ("python -m shop | tail -3; echo $?", "0", UNKNOWN, None),
    ("python -m shop || true", TRACEBACK, FAILED, None),
    ("python -m shop 2>&1 | tail -5", TRACEBACK, FAILED, None),
    ("python -m shop || true", f"{TRACEBACK}went on all the same\n", UNKNOWN, None),
    ("python -m shop; python -m till; true", TRACEBACK, UNKNOWN, None),
    ("CC=cc cmake -S . -B b | tail -4; test -f b/Makefile", "CMake Error: CMAKE_C_COMPILER not set\n", FAILED, None),
    ("make 2>&1 | tail -2; ls out", "make: *** [Makefile:3: all] Error 2\n", FAILED, None),
    ("make 2>&1 | tail -2; ls out", "make: [Makefile:3: all] Error 1 (ignored)\n", UNKNOWN, None),
    ("cmake --build b | tail -3", "[ 50%] Linking\n[100%] Built target shop\n", OK, None),
    ("cmake --build b | tail -3", "[100%] Built target a\nmake: *** [all] Error 2\n", UNKNOWN, None),
    ("cmake --build b | tail -3", "[ 50%] Built target shop\n", UNKNOWN, None),
]

CHAINS = [
    ("cmake -S . -B b > /dev/null && cmake --build b | tail -3 && ctest --test-dir b", "0% tests passed, 1 tests failed out of 1",
     {"cmake -S . -B b": OK, "cmake --build b": UNKNOWN, "ctest --test-dir b": FAILED}),
    ("npm ci && npm run build && npm test", "Tests: 1 failed, 2 passed, 3 total", {"npm ci": OK, "npm run build": OK, "npm test": FAILED}),
    ("npm ci && cmake .. && make", "CMake Error at CMakeLists.txt:3 (add_library)\n", {"npm ci": OK, "cmake ..": FAILED}),
    ("javac A.java && pytest", "A.java:3: error: ';' expected\n1 error\n", {"javac A.java": UNKNOWN}),
    ("npm ci && make", "nothing told", {"npm ci": UNKNOWN}),
    ("cmake .. && cmake --build .", "CMake Error: x\n", {"cmake ..": UNKNOWN}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "output", "expected"), CHAINS)
def test_what_spoke_in_a_failed_chain_tells_that_those_before_it_ran(command, output, expected):
    assert {one.command: one.last for one in _found(call(command, 1, output=output))} == expected


@pytest.mark.parametrize(
    ("lines", "times", "is_least"),
    [
        ([("make && ctest", 1, "0% tests passed, 1 tests failed out of 1"), ("ctest", 0, "")], 2, False),
        ([("make && ctest", 1, "stopped"), ("ctest", 0, ""), ("ctest", 0, "")], 2, True),
        ([("make && ctest", 0, ""), ("ctest", 1, "")], 2, False),
    ],
)
def test_all_runs_of_a_command_are_counted_or_said_to_be_the_least(lines, times, is_least):
    found = _found(*(call(command, exit_, output=output) for command, exit_, output in lines))
    assert [(one.times, one.is_least) for one in found if one.command == "ctest"] == [(times, is_least)]


def test_of_a_run_without_a_known_end_the_status_of_its_line_is_told():
    found = _found(call("make | tail; test -f out", 1))
    assert [(one.last, one.line_exit) for one in found] == [(UNKNOWN, 1)]


@pytest.mark.parametrize(("command", "output", "last", "exit_"), PRINTED)
def test_what_a_command_printed_tells_how_it_ended(command, output, last, exit_):
    found = _found(call(command, output=output))
    assert {(one.last, one.exit) for one in found} == {(last, exit_)}


@pytest.mark.parametrize(
    ("command", "readme", "is_named"),
    [
        ("python -m shop", "Start it with\n\n    python -m shop\n", True),
        ("python -m shop", "Start it with `python -m shop`.", True),
        ("python -m shop", "Start it with python -m shop.till", False),
        ("./start", "The ./start of the season", False),
        ("./start", "Call `./start`", True),
        ("npm start", "", True),
        ("node a.js", "", True),
        ("node b.js", "", False),
        ("npm run start", "", True),
        ("sh bin/x", "Start it with `./bin/x`.", True),
        ("python3 a.py", "    $ python a.py\n", True),
        ("make -C web run", "cd web && make run\n", True),
        ("make", "", False),
    ],
)
def test_a_command_that_the_project_names_is_marked(command, readme, is_named):
    scripts = [Script("start", "npm start", "node a.js", f"{TARGET}/package.json", "run")]
    assert [one.named for one in usage.marked(_found(call(command)), readme, scripts)] == [is_named]


def test_a_test_run_that_a_pipe_hides_is_told_by_what_it_printed():
    (found,) = _found(call("pytest | tail -5", output="== 1 failed in 0.10s =="))
    assert found.last is FAILED


@pytest.mark.parametrize(
    ("command", "folder", "expected"),
    [
        ("cd api && npm test", TARGET, ["api"]),
        (f"cd {TARGET}/web && npm test", "/tmp", ["web"]),
        ("(cd api && npm ci); npm test", TARGET, ["api", ""]),
        ("npm test", f"{TARGET}/web", ["web"]),
        ("cd .. && npm test", TARGET, []),
        ("cd $X && npm test", TARGET, []),
        ("npm test", "/home/dev/other", []),
    ],
)
def test_a_command_belongs_to_the_folder_it_ran_in(command, folder, expected):
    assert [one.folder for one in _found(call(command, folder=folder))] == expected


def test_runs_of_a_command_are_one_line_with_last_success_and_failure():
    runs = [
        call("pytest  -q", 1, started=1, ended=2, message_id="a", output="E\n1 failed"),
        call("pytest -q", 0, started=3, ended=4, message_id="b"),
    ]
    (found,) = _found(*runs)
    assert (found.times, found.last, found.exit, found.error) == (2, OK, 1, "1 failed")
    assert (found.failed.message_id, found.succeeded.message_id) == ("a", "b")


def test_a_one_off_counts_where_it_failed_and_passed_later():
    failed = call(
        'python -c "from store import S; S().add(1); S().remove(1)"', 1, started=1, output="AttributeError: remove"
    )
    passed = call('python -c "from store import S; S().add(1); print(S().remove(1))"', 0, started=2)
    (found,) = _found(failed, passed)
    assert (found.group, found.times, found.error, found.last) == ("check", 2, "AttributeError: remove", OK)


def test_a_reverted_turn_counts_only_if_no_other_turn_ran_the_command():
    back = turn("x", call("make test", 1), call("make dist"), taken_back=True)
    found = usage.find(TARGET, [session(back, turn("y", call("make test", 0)))])
    assert [(one.command, one.taken_back, one.last) for one in found] == [
        ("make dist", True, OK),
        ("make test", False, OK),
    ]


@pytest.mark.parametrize("fields", [{"status": CallStatus.REFUSED}, {"status": CallStatus.FAILED, "exit_": None}])
def test_a_call_that_was_never_run_is_left_out(fields):
    status, exit_ = fields["status"], fields.get("exit_", 0)
    assert _found(call("pytest", exit_, status=status)) == ()


def test_the_copied_turns_of_a_fork_are_not_counted_twice():
    assert _found(call("pytest"), copied=1) == ()


def test_groups_come_in_their_order_and_in_each_the_newest_first():
    calls = [
        call("make deploy", started=1),
        call("pytest", started=2),
        call("tox", started=3),
        call("npm ci", started=4),
    ]
    assert [one.command for one in _found(*calls)] == ["npm ci", "tox", "pytest", "make deploy"]


def test_a_secret_on_the_command_line_is_hidden():
    token = "ghp_" + "a1B2" * 9
    (found,) = _found(call(f"TOKEN={token} npm publish"))
    assert token not in found.command


@settings(max_examples=examples(150), deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(
        st.sampled_from(
            ["pytest", "&&", "|", ";", "cd", "x", "(", ")", "'", "$(", "<<E", "\n", "-c", "python", "npm", "run"]
        ),
        max_size=12,
    ).map(" ".join),
    st.sampled_from([0, 1, None]),
)
def test_any_command_gives_bounded_lines_and_no_error(command, exit_):
    for one in _found(call(command, exit_)):
        assert one.group in GROUPS
        assert 0 < len(one.command) <= 300
        assert "\n" not in one.command
