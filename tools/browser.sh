#!/bin/sh
# Makes sure that there is a Chromium for the browser tests: the one on PATH or in III_CHROMIUM, else the system's package.
set -eu

for name in "${III_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if command -v apt-get >/dev/null 2>&1; then
    $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends chromium && exit 0
fi
echo "browser: no Chromium on PATH, and it could not be installed: install it, or name one in III_CHROMIUM" >&2
exit 1
