"""The tests, a folder a room; `e2e` starts the whole local platform."""
