"""Catalogues of tools from manifests, with diagnostics for their authors."""
