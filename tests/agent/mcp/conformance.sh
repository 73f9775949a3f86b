#!/bin/sh
# Run MCP's conformance suite and Inspector against the face, and the suite for clients against an import:
# needs npm, brings a Node that is new enough.
# The packages stay in the folder of the first argument, by default one for temporary files.
set -eu
cd "$(dirname "$0")/../../.."
folder=${1:-${TMPDIR:-/tmp}/beckon-mcp-conformance}
mkdir -p "$folder"
npm install --prefix "$folder" --no-audit --no-fund --loglevel=error \
    node@22.23.3 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
BECKON_TEST_NODE_MODULES="$(cd "$folder" && pwd)/node_modules" \
    .venv/bin/pytest tests/agent/mcp/test_conformance.py tests/agent/mcp/test_task_conformance.py \
    tests/adapter/test_client_conformance.py -q -rP
