#!/bin/sh
# Try the clients that people have, as they are published: in Node `openai`, the A2A SDK and AG-UI, LangChain, `llm`; and a
# published MCP server, imported.
# Needs npm; brings a Node that is new enough. The packages stay in the folder of the first argument, by
# default one for temporary files.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-${TMPDIR:-/tmp}/beckon-clients}
mkdir -p "$folder/node"
cp tests/clients/node/package.json tests/clients/node/package-lock.json tests/clients/node/*.test.mjs "$folder/node"
npm ci --prefix "$folder/node" --no-audit --no-fund --loglevel=error
test -x "$folder/python/bin/python" || .uv/bin/uv venv --quiet --no-config --python .venv/bin/python "$folder/python"
.uv/bin/uv pip install --quiet --no-config --python "$folder/python/bin/python" -r tests/clients/python/requirements.txt
BECKON_TEST_CLIENTS="$(cd "$folder" && pwd)" .venv/bin/pytest tests/clients -q -rP
