"""The page that the agent serves at `/`: what a browser loads, and nothing that answers a request.

`index.html`, `app/` and `styles/` are ours, and served as they are written: there is no build step.
`vendor/` holds the libraries; `make page` brings it, and git ignores it. The routes are `faces.page`.
"""
