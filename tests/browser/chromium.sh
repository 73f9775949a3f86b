#!/bin/sh
# Brings a Chromium where there is none, if this machine lets us: Debian's, as root.
set -eu
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit
done
test -z "${BECKON_CHROMIUM:-}" || exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null
else
    echo 'The tests of the page need Chromium: install it, or name one with BECKON_CHROMIUM=/path/to/it' >&2
    exit 2
fi
