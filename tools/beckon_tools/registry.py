"""The lookup of a tool by shipped name or `module:attribute`.

That is how users name it on the command line.
"""

import difflib
import importlib
import inspect
import sys
from pathlib import Path

from beckon_tools.declaration import AnyTool, Tool
from beckon_tools.errors import DeclarationError, UsageError
from beckon_tools.settings import Settings
from beckon_tools.shipped import SHIPPED


def find_tool(name: str, settings: Settings) -> AnyTool:
    """Return the tool of this name; raise `UsageError` if there is none.

    `module:attribute` names a tool, or a function that takes the settings and returns one.
    """
    reference = SHIPPED.get(name.replace(".", "-"), name)
    if ":" not in reference:
        near = difflib.get_close_matches(name, SHIPPED, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the shipped tools are {', '.join(SHIPPED)}"
        raise UsageError(f"there is no tool {name!r}; {hint} (your own: module:attribute)")
    return _load_tool(reference, settings)


def _load_tool(reference: str, settings: Settings) -> AnyTool:
    module_name, _, attribute = reference.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # a tool under construction lies where its author stands
    try:
        found = getattr(importlib.import_module(module_name), attribute)
        if _is_builder(found):
            found = found(settings)
    except DeclarationError as error:
        raise UsageError(f"{reference} is no tool yet: {error}") from None
    except ModuleNotFoundError as error:
        where = f"; it is looked for in {here} first" if error.name == module_name else ""
        raise UsageError(f"{reference} cannot be imported: {error}{where}") from None
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{reference} cannot be imported: {error}") from None
    if not isinstance(found, Tool):
        raise UsageError(f"{reference} is no tool; declare it with @tool(type=…)")
    return found


def _is_builder(found: object) -> bool:
    """Return True for a plain function of one argument, the settings."""
    if not inspect.isfunction(found) or inspect.iscoroutinefunction(found):
        return False
    return len(inspect.signature(found).parameters) == 1
