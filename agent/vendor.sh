#!/bin/sh
# Copies what the page loads of its libraries to where the agent serves it from, and the wheel takes it from.
# Each library is asked for by the name in the import map of beckon_agent/page/index.html.
set -eu
cd "$(dirname "$0")"
from=node_modules
to=beckon_agent/page/vendor

rm -rf "$to"
mkdir -p "$to/eventsource-parser"
cp "$from/preact/dist/preact.mjs" "$from/preact/hooks/dist/hooks.mjs" \
    "$from/@preact/signals-core/dist/signals-core.mjs" "$from/@preact/signals/dist/signals.mjs" \
    "$from/htm/dist/htm.mjs" "$from/marked/lib/marked.esm.js" "$from/dompurify/dist/purify.es.mjs" "$to"
cp "$from/eventsource-parser/dist/index.js" "$from/eventsource-parser/dist/parse.js" \
    "$from/eventsource-parser/dist/errors.js" "$to/eventsource-parser"
for font in latin-wght-normal latin-wght-italic latin-ext-wght-normal; do
    cp "$from/@fontsource-variable/figtree/files/figtree-$font.woff2" "$to"
done
# Their licences ask to go wherever the files go.
for library in preact @preact/signals @preact/signals-core htm marked dompurify eventsource-parser @fontsource-variable/figtree; do
    for licence in "$from/$library"/LICENSE*; do
        test ! -f "$licence" || printf '%s\n\n%s\n\n' "== $library" "$(cat "$licence")"
    done
done > "$to/LICENCES.txt"
