"""Secrets beneath the name of their column."""

from __future__ import annotations

import pytest

from daemon.redact import known, redact

SECRET = "blue" + "horse90"
KEY = "q7Rk2mZp9T4xc8nLd3V5bHs6"


@pytest.mark.parametrize(
    "table",
    [
        "| user | password |\n|------|----------|\n| bob  | {} |\n| eve  | {} |\n",
        "user | password\n--- | ---\nbob | {}\n",
        " id | user | db_password | city\n----+------+-------------+------\n  1 | bob  | {} | Rome\n(1 row)\n",
        "+------+----------+\n| user | password |\n+------+----------+\n| bob  | {} |\n+------+----------+\n",
        "│ user │ password │\n├──────┼──────────┤\n│ bob  │ {} │\n",
        "name,password,city\nbob,{},Rome\neve,{},Oslo\n",
        'name;"password";city\n"bob";"{}";"Rome"\n',
        "name\tpassword\nbob\t{}\n",
        "> | user | password |\n> |---|---|\n> | bob | {} |\n",
        "before\n| user | password |\r\n|---|---|\r\n| bob | {} |\r\nafter",
        "    name,password\\n    bob,{}\\n",
        '{"output": "| user | password |\\\\n|---|---|\\\\n| bob | {} |\\\\n"}',
        '{"output": "name,password\\\\nbob,{}"}',
        "| user | Password | API key |\n|---|---|---|\n| bob | {} | x |",
    ],
)
def test_a_secret_is_hidden_in_every_row_beneath_its_name(table: str) -> None:
    with known.only({}):
        redacted = redact(table.replace("{}", SECRET))
    assert SECRET not in redacted
    assert redacted.count("[REDACTED:password:") == table.count("{}")


def test_a_key_is_hidden_beneath_its_name() -> None:
    assert KEY not in redact(f"| service | API key |\n|---|---|\n| mail | {KEY} |")


@pytest.mark.parametrize(
    "table",
    [
        "| user | tokens |\n|---|---|\n| bob | 1234567 |\n",
        "| model | token | share |\n|---|---|---|\n| large | 128000 | 12.5 % |\n",
        "| setting | password |\n|---|---|\n| least length | $PASSWORD2 |\n",
        "| field | password |\n|---|---|\n| type | string |\n",
        "name,password\n\nbob,blue" + "horse91\n",
        "name, password, and city in 2024\nbob, blue" + "horse91, or Rome2024 (again)\n",
        "def login(user, password, city):\n    check(first1, second22, third333)\n",
        "user, password\nfirst = read(a1b2c3d4), second\n",
    ],
)
def test_other_tables_and_code_stay(table: str) -> None:
    assert redact(table) == table


def test_only_rows_of_the_table_belong_to_its_columns() -> None:
    text = f"| user | password |\n|---|---|\n| bob | {SECRET} |\n\n| version | name |\n|---|---|\n| a | release2026 |\n"
    with known.only({}):
        assert redact(text).endswith("| a | release2026 |\n")
