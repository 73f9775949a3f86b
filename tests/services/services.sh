#!/bin/sh
# Try services of others as tools: made with the CloudEvents SDKs of Python, Node and Go, with func-python, and
# with none. Needs npm and go. The packages and the built program stay in the folder of the first argument, by
# default in the cache of the tests.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-$HOME/.cache/beckon/services}
mkdir -p "$folder/node"
folder=$(cd "$folder" && pwd)
cp tests/services/node/package.json tests/services/node/package-lock.json tests/services/node/services.mjs "$folder/node"
npm ci --prefix "$folder/node" --no-audit --no-fund --loglevel=error
test -x "$folder/python/bin/python" || .uv/bin/uv venv --quiet --no-config --python .venv/bin/python "$folder/python"
.uv/bin/uv pip install --quiet --no-config --python "$folder/python/bin/python" -r tests/services/python/requirements.txt
if command -v go >/dev/null; then
    (cd tests/services/go && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$folder/services-in-go" .)
elif [ -n "${CI:-}" ]; then
    echo 'services.sh: go is missing, and the service in Go would be skipped: install Go from go.dev/dl' >&2
    exit 1
fi
BECKON_TEST_SERVICES="$folder" .venv/bin/pytest tests/services -q -rsP
