"""The events and requests of CloudEvents' own conformance files, in both modes."""

import re

import pytest
import yaml

from beckon_contract.cloudevents.events import (
    RELAYED,
    CloudEvent,
    EventError,
    from_http,
    to_binary,
    to_structured,
)
from tests.shared_data import shared_data


def conformance_events(version: str = "v1") -> list[dict[str, object]]:
    folder = shared_data("cloudevents", "conformance-yaml")
    files = [folder / f"{version}.yaml", *sorted(folder.glob(f"{version[:2]}*/{version}_*.yaml"))]
    return [document for file in files for document in yaml.load_all(file.read_text(), yaml.BaseLoader)]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_the_conformance_events_pass_through_either_mode(mode: str) -> None:
    events = conformance_events()
    assert len(events) >= 8
    for document in events:
        context = document["ContextAttributes"]
        assert isinstance(context, dict)
        attributes = {name: value for name, value in context.items() if name != "Extensions"}
        # The YAML block ends in a line feed, which the String type does not allow.
        extensions = {name: value.strip() for name, value in context.get("Extensions", {}).items()}
        assert attributes.pop("specversion") == "1.0"
        data = str(document["Data"]).strip().encode()
        event = CloudEvent(**attributes, data=data, extensions=extensions)
        headers, body = to_binary(event) if mode == "binary" else to_structured(event)
        got = from_http([(name.encode(), value.encode()) for name, value in headers], body)
        assert (got.data, got.time, got.extensions) == (data, attributes.get("time"), extensions)
        assert got.attributes().items() >= {**attributes, **extensions}.items()


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_of_version_0_3_pass_a_broker_as_they_are(mode: str) -> None:
    events = conformance_events("v03")
    assert len(events) >= 4
    for document in events:
        context = document["ContextAttributes"]
        assert isinstance(context, dict)
        attributes = {name: value for name, value in context.items() if name != "Extensions"}
        given = {name: value.strip() for name, value in context.get("Extensions", {}).items()}
        extensions = {**given, "schemaurl": "http://example.com/schema"}
        data = str(document["Data"]).strip().encode()
        event = CloudEvent(**attributes, data=data, extensions=extensions)
        headers, body = to_binary(event) if mode == "binary" else to_structured(event)
        pairs = [(name.encode(), value.encode()) for name, value in headers]

        found = from_http(pairs, body, versions=RELAYED)
        assert found.data == data
        assert found.attributes().items() >= event.attributes().items()
        with pytest.raises(EventError, match=r"'0\.3' is not supported; send 1\.0"):
            from_http(pairs, body)


def test_the_feature_file_of_the_http_binding_holds() -> None:
    text = shared_data("cloudevents", "http-protocol-binding.feature").read_text()
    requests = re.findall(r'Given an HTTP request\s+"""\n(.*?)\n\s+"""', text, re.DOTALL)
    contents = [
        re.findall(r"\| (application/\S+(?:; charset=utf-8)?) +\|", part)[-2:]
        for part in text.split("Outline")[1:]
    ]
    assert len(requests) == 2
    for request, types in zip(requests, contents, strict=True):
        assert len(types) == 2
        head, _, body = "\n".join(line.strip() for line in request.split("\n")).partition("\n\n")
        for content_type in types:
            lines = [
                line.partition(": ") for line in head.replace("<contentType>", content_type).split("\n")[1:]
            ]
            event = from_http([(name.encode(), value.encode()) for name, _, value in lines], body.encode())
            assert (event.id, event.type) == ("1234-1234-1234", "com.example.someevent")
            assert (event.source, event.time) == ("/mycontext/subcontext", "2018-04-05T03:56:24Z")
            declared = "application/json" if "cloudevents" in content_type else content_type
            assert (event.datacontenttype, event.json()) == (declared, {"message": "Hello World!"})
