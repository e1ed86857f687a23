#!/bin/sh
# Runs the suites: `quick` is make test, `long` what make test-all adds, `soak` the long ones until stopped.
set -eu
cd "$(dirname "$0")/.."
mode=$1
shift

workers=$(.venv/bin/python -c 'import os; print(max(2, min(8, os.cpu_count() or 2)))')

case $mode in
quick)
    # What speaks of the specification alone: the engine's suite in a process of its own, then everything else.
    .venv/bin/python tools/conformance.py test_smoke.py test_frames.py test_connect.py test_invoke.py \
        test_introspection.py test_channels.py test_state.py test_triggers.py test_configuration.py
    exec .venv/bin/pytest -q -n "$workers" -m "not slow" "$@"
    ;;
long)
    # One process: these suites measure nothing, but they start servers and kill processes. The browser's tests have one of
    # their own: what drives it keeps an event loop running, beside which no other test could run one.
    timeout 300 .venv/bin/pytest -q -m slow --timeout 120 tests/browser "$@"
    exec timeout 1200 .venv/bin/pytest -q -m slow --timeout 600 --ignore tests/browser "$@"
    ;;
soak)
    round=1
    while :; do
        echo "soak: round $round" >&2
        .venv/bin/pytest -q -m slow --timeout 3600 tests/browser "$@"
        .venv/bin/pytest -q -m slow --timeout 3600 --ignore tests/browser "$@"
        round=$((round + 1))
    done
    ;;
*)
    echo "usage: tools/test.sh quick|long|soak [pytest arguments]" >&2
    exit 2
    ;;
esac
