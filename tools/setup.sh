#!/bin/sh
# Installs everything the tree needs into the tree: uv (from PyPI) below .tools, then the locked environment in .venv.
# Quick when nothing changed. UV_GROUPS names further dependency groups (for example "providers").
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.9

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

python=${PYTHON:-}
if [ -z "$python" ]; then
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
fi
[ -n "$python" ] || fail "Python 3.11 or newer was not found on PATH; install it, or name it: make setup PYTHON=/path/to/python3"

stamp=.venv/.setup-stamp
want="$UV_VERSION ${UV_GROUPS:-} $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])') $(cat uv.lock pyproject.toml | cksum)"
if [ -x .venv/bin/iii-stack ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    exit 0
fi

if ! .tools/uv/bin/uv --version 2>/dev/null | grep -q " $UV_VERSION"; then
    echo "setup: installing uv $UV_VERSION into .tools" >&2
    rm -rf .tools/uv
    if "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location --target .tools/uv "uv==$UV_VERSION" ||
            fail "uv $UV_VERSION could not be installed from PyPI; is the network reachable?"
    else
        "$python" -m venv .tools/uv ||
            fail "this Python has neither pip nor venv; on Debian and Ubuntu: apt install python3-venv"
        .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
            fail "uv $UV_VERSION could not be installed from PyPI; is the network reachable?"
    fi
fi

groups=""
for group in ${UV_GROUPS:-}; do groups="$groups --group $group"; done
echo "setup: installing the locked environment into .venv" >&2
# shellcheck disable=SC2086
UV_PYTHON_DOWNLOADS=never .tools/uv/bin/uv sync --quiet --frozen --all-packages --compile-bytecode --python "$python" $groups
# The first start is as quick as later ones, also where Python is told to write no bytecode (PYTHONDONTWRITEBYTECODE).
.venv/bin/python -m compileall -q shared/*/src packages/*/src workers/*/src
printf '%s' "$want" >"$stamp"
