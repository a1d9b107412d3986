#!/bin/sh
# Makes .venv with exactly the versions of requirements.lock. Uses uv when it is there, else venv and pip.
# $VENV names another place for it, $PACKAGE a wheel to install in place of the checkout.
set -eu
python="${PYTHON:-python3}"
venv="${VENV:-.venv}"
package="${PACKAGE:-}"
"$python" - <<'PY' || exit 1
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit(f"reconstitute needs Python 3.11 to 3.14, found {sys.version.split()[0]}: "
             "name another one with `make PYTHON=python3.12 run`")
PY
echo "Setting up $venv (about 600 MB, once) ..."

# uv installs in a tenth of pip's time; where there is none, the lock's own comes into .venv first.
uv=$(command -v uv || true)
if [ -z "$uv" ] && [ -x .venv/bin/uv ]; then uv=.venv/bin/uv; fi
if [ -n "$uv" ]; then
    "$uv" venv --quiet --allow-existing --python "$python" "$venv"
else
    # Debian's python3 comes without ensurepip unless python3-venv is installed; pip alone can make up for it.
    if ! "$python" -m venv "$venv" >.venv-setup.log 2>&1; then
        if "$python" -m pip --version >/dev/null 2>&1; then
            "$python" -m venv --without-pip "$venv"
            "$python" -m pip --quiet --python "$venv/bin/python" install --ignore-installed pip
        else
            cat .venv-setup.log >&2
            echo "This Python cannot make a virtual environment: install 'uv', or Debian's python3-venv." >&2
            exit 1
        fi
    fi
    sed -n '/^uv==/,/[^\\]$/p' requirements.lock |
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin
    uv="$venv/bin/uv"
fi
case "$uv" in *.venv/bin/uv) export UV_CACHE_DIR=.cache/uv ;; esac  # `make clean` takes it away

# pip, where uv cannot: it does not read pip's configuration of a package index.
# Nothing is compiled here: Python compiles what is imported on its first use, which is a small part of it all.
"$uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r requirements.lock ||
    { [ -x "$venv/bin/pip" ] && "$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile \
        --require-hashes -r requirements.lock; }
# shellcheck disable=SC2086 # --editable and its dot are two words
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --reinstall \
    ${package:---editable .}
rm -f .venv-setup.log
touch "$venv/.ready"
