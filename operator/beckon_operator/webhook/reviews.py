"""The webhook's answers: `spec.schemaData` is copied into an annotation.

The functions are pure, without HTTP. Every review is allowed: a problem is reported as a warning to the
client that applies the EventType, and again in the Tool's conditions. The answer depends on the object alone,
so a repeated request or a dry run does no harm.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from beckon_contract.catalogue.annotations import LAST_APPLIED, PARAMETERS, SCHEMA_DATA
from beckon_contract.knative.eventtypes import GROUP, InvalidEventType, parse_event_type, why_no_tool
from beckon_contract.kubernetes_objects import Resource, from_object
from beckon_contract.schema.parameters import SchemaError, normalise_text
from beckon_contract.yamltext import NotReadable, read_json

MAX_ANNOTATIONS = 256 * 1024  # bytes of all keys and values together (apimachinery, objectmeta.go)
MAX_WARNING = 240  # characters; the API server cuts longer ones at 256

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"
# v1beta3 has no field for the text, so it neither brings one nor says that there is none.
_VERSIONS = ("v1beta1", "v1beta2")
_OPERATIONS = ("CREATE", "UPDATE")
_POINTER = "/metadata/annotations"
_POINTER_TO_COPY = f"{_POINTER}/{SCHEMA_DATA.replace('~', '~0').replace('/', '~1')}"


class Outcome(StrEnum):
    """The outcome of a review, for the metrics."""

    COPIED = "kept"  # the text was copied
    PRESENT = "present"  # the copy was there already
    REMOVED = "removed"  # the copy was taken away with what it was a copy of
    TOO_LARGE = "too_large"  # the text does not fit into annotations
    NOTHING = "nothing"  # there was nothing to copy


class Malformed(ValueError):
    """A body is no AdmissionReview; the message says why. It also names the wrong member."""


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The answer to one review.

    `patch` holds operations of JSON Patch (RFC 6902); kubectl prints `warnings`.
    """

    uid: str
    outcome: Outcome
    patch: tuple[Mapping[str, object], ...] = ()
    warnings: tuple[str, ...] = ()
    subject: str = ""

    def to_review(self) -> dict[str, Any]:
        """Return the AdmissionReview to send back."""
        response: dict[str, Any] = {"uid": self.uid, "allowed": True}
        if self.patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(self.patch).encode()).decode()
        if self.warnings:
            response["warnings"] = [_one_line(text) for text in self.warnings]
        return {"apiVersion": _API_VERSION, "kind": _KIND, "response": response}


class _RequestedKind(BaseModel):
    """The kind of resource that a request is about."""

    group: str
    version: str
    resource: str


class _Request(BaseModel):
    """The part of an AdmissionRequest that is looked at."""

    model_config = ConfigDict(frozen=True)

    uid: str = Field(min_length=1, max_length=128)
    operation: str
    resource: _RequestedKind
    subresource: str = Field("", alias="subResource")
    namespace: str = ""
    new: dict[str, Any] | None = Field(None, alias="object")
    old: dict[str, Any] | None = Field(None, alias="oldObject")

    def is_ours(self) -> bool:
        """Return True for a write of an EventType version with the field."""
        kind = (self.resource.group, self.resource.resource, self.subresource)
        return (
            kind == (GROUP, "eventtypes", "")
            and self.resource.version in _VERSIONS
            and self.operation in _OPERATIONS
        )


class _Review(BaseModel):
    """An AdmissionReview as the API server sends it."""

    api_version: Literal["admission.k8s.io/v1"] = Field(alias="apiVersion")
    kind: Literal["AdmissionReview"]
    request: _Request


def answer_review(body: bytes) -> ReviewAnswer:
    """Answer the AdmissionReview in a body; raise `Malformed` for other bodies."""
    try:
        request = _Review.model_validate_json(body).request
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise Malformed(f"{where}: {first['msg']}") from None
    if not request.is_ours() or request.new is None:
        return ReviewAnswer(request.uid, Outcome.NOTHING)
    new = _read_resource(request.new, request.namespace, "object")
    old = _read_resource(request.old, request.namespace, "oldObject") if request.old is not None else None
    return _judge_change(request.uid, new, old)


def _read_resource(document: Mapping[str, Any], namespace: str, where: str) -> Resource:
    try:
        return from_object(document, namespace=namespace or "default")
    except ValueError as error:
        raise Malformed(f"request.{where}: {error}") from None


def _judge_change(uid: str, new: Resource, old: Resource | None) -> ReviewAnswer:
    text, copy = _schema_data(new.spec), new.annotations.get(SCHEMA_DATA)
    subject = f"{new.namespace}/{new.name}"
    if text is None:
        if old is not None and _was_removed(new, old):
            return ReviewAnswer(uid, Outcome.REMOVED, (_REMOVE,), subject=subject)
        return ReviewAnswer(uid, Outcome.NOTHING)
    warnings = _warn_unusable(new, text)
    if text == copy:
        return ReviewAnswer(uid, Outcome.PRESENT, warnings=warnings)
    size = _total_size({**new.annotations, SCHEMA_DATA: text})
    if size > MAX_ANNOTATIONS:
        # An older copy would be taken for what the author wants now.
        patch = (_REMOVE,) if copy is not None else ()
        return ReviewAnswer(uid, Outcome.TOO_LARGE, patch, (_too_large(size),), subject)
    return ReviewAnswer(uid, Outcome.COPIED, (_add_annotation(new, text),), warnings, subject)


_REMOVE: Mapping[str, object] = {"op": "remove", "path": _POINTER_TO_COPY}


def _add_annotation(new: Resource, text: str) -> Mapping[str, object]:
    if new.annotations:
        return {"op": "add", "path": _POINTER_TO_COPY, "value": text}
    return {"op": "add", "path": _POINTER, "value": {SCHEMA_DATA: text}}


def _was_removed(new: Resource, old: Resource) -> bool:
    """Return True if `kubectl apply` has removed the text from the manifest.

    A missing text alone proves nothing, because Knative erases it. A removal shows only in the manifests that
    client-side apply leaves on the object. The copy is removed only if the older manifest held the same text,
    and never if it was written by hand.
    """
    copy = new.annotations.get(SCHEMA_DATA)
    before, after = _last_applied(old), _last_applied(new)
    if not copy or before is None or after is None:
        return False
    metadata = after.get("metadata")
    written = metadata.get("annotations") if isinstance(metadata, dict) else None
    by_hand = isinstance(written, dict) and SCHEMA_DATA in written
    return (
        _schema_data(before.get("spec")) == copy and _schema_data(after.get("spec")) is None and not by_hand
    )


def _last_applied(resource: Resource) -> Mapping[str, Any] | None:
    try:
        manifest = read_json(resource.annotations.get(LAST_APPLIED, ""))
    except NotReadable:
        return None
    return manifest if isinstance(manifest, dict) else None


def _schema_data(spec: object) -> str | None:
    text = spec.get("schemaData") if isinstance(spec, Mapping) else None
    return text if isinstance(text, str) and text.strip() else None


def _warn_unusable(new: Resource, text: str) -> tuple[str, ...]:
    """Return a warning if the text is unusable as parameters of a tool.

    There is none if another annotation holds the parameters, and none for an EventType that makes no tool or
    is invalid.
    """
    if new.annotations.get(PARAMETERS, "").strip():
        return ()
    try:
        if why_no_tool(parse_event_type(new)) is not None:
            return ()  # its schema is not for a tool, so it may be of any kind
        normalise_text(text)
    except InvalidEventType:
        return ()  # which its Tool says with every mistake
    except SchemaError as error:
        return (f"spec.schemaData makes no parameters for a tool ({error.reason}): {error}",)
    return ()


def _too_large(size: int) -> str:
    return (
        f"spec.schemaData is not copied: with it the annotations have {size} bytes, and Kubernetes allows "
        f"{MAX_ANNOTATIONS}; shorten it, because Knative erases the field itself"
    )


def _total_size(annotations: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items())


def _one_line(text: str) -> str:
    # Warnings travel in an HTTP header: control characters make the API server drop them.
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= MAX_WARNING else line[: MAX_WARNING - 1] + "…"
