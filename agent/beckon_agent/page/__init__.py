"""The page at `/`: the files for a browser, without request handlers.

`index.html`, `app/` and `styles/` are ours, and served as they are written: there is no build step.
`vendor/` holds the libraries; `make page` brings it, and git ignores it. The routes are `api.page`.
"""
