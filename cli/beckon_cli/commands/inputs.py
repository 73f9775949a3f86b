"""Forms that tools put to a person: `beckon inputs` and `answer`."""

import asyncio
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from beckon_cli.client import AgentClient, answer_command
from beckon_cli.commands.call import read_value, split_pairs
from beckon_cli.errors import CommandError
from beckon_cli.output import err, out, print_json
from beckon_cli.settings import Settings, load_settings

_MOST = 100


def inputs(*, json: bool = False) -> None:
    """List forms waiting for input, with their ids and fields for `beckon answer`.

    Parameters
    ----------
    json
        Print one JSON document instead.
    """
    forms = asyncio.run(_list_forms(load_settings()))
    if json:
        print_json(forms)
        return
    for form in forms:
        out.print(Text(f"? {form['name']}: {form['message']}", style="yellow"))
        out.print(Text(f"  {answer_command(form['id'], form['schema'])}"))
    if not forms:
        out.print("no tool waits for input")


def answer(form: str, /, *fields: str, decline: bool = False, json: bool = False) -> None:
    """Fill in a tool's form; its run continues with the answer.

    For instance: beckon answer inreq_0123… size=7

    Parameters
    ----------
    form
        The id of the form, inreq_…, as `beckon inputs` prints it.
    fields
        name=value, by the form's schema; other values than texts are written as JSON.
    decline
        Refuse the form; the tool gets no values.
    json
        Print one JSON document instead.
    """
    if not form:
        raise CommandError("no form; write for instance: beckon answer inreq_0123… size=7", status=2)
    if decline and fields:
        raise CommandError("--decline takes no values", status=2)
    written = None if decline else split_pairs(fields)
    answered = asyncio.run(_answer_form(load_settings(), form, written))
    if json:
        print_json(answered)
    else:
        out.print("declined" if decline else "answered")
        err.print("what follows: beckon runs", style="dim")


async def _list_forms(settings: Settings) -> list[dict[str, Any]]:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        return await client.get_page("/inputs", limit=_MOST)


async def _answer_form(settings: Settings, form: str, written: Mapping[str, str] | None) -> dict[str, Any]:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        if written is None:
            return await client.answer_input(form, {"action": "decline"})
        known = await client.get_page("/inputs", limit=_MOST)
        schemas: list[dict[str, Any]] = [one["schema"] for one in known if one["id"] == form]
        fields = schemas[0].get("properties", {}) if schemas else {}
        content = {name: _read_field(text, fields.get(name, {})) for name, text in written.items()}
        return await client.answer_input(form, {"action": "accept", "content": content})


def _read_field(text: str, schema: Mapping[str, Any]) -> object:
    """Return the value of a field: a text as it is, anything else as JSON."""
    return text if schema.get("type") == "string" else read_value(text)
