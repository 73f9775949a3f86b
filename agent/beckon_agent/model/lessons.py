"""Learning a server's habits from its refusals, where no table could know them.

A gateway or a local server may stand for any provider. What it refuses in words
that we know changes the profile, and the request is sent once more.
"""

import re
from collections.abc import Mapping

from beckon_agent.model.errors import ModelRefused
from beckon_agent.model.profiles import Profile, changed

_DISPENSABLE = (
    "stream_options",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "stop",
    "max_completion_tokens",
    "max_tokens",
    "tool_choice",
)
_REFUSAL = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|not (supported|permitted|allowed)|no longer supported"
    r"|does not support|extra (inputs|fields)|must be auto",
    re.IGNORECASE,
)

_LESSONS: tuple[tuple[re.Pattern[str], Mapping[str, object]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), changes)
    for pattern, changes in (
        (r"max_tokens.*use.*max_completion_tokens", {"limit_field": "max_completion_tokens"}),
        (
            r"(unsupported|unknown|unrecogni[sz]ed|unexpected) [^.]*max_completion_tokens"
            r"|max_completion_tokens[^.]* not (supported|permitted|allowed)",
            {"limit_field": "max_tokens"},
        ),
        (r"unexpected role .user. after role .tool.", {"assistant_after_tool": True}),
        (r"tool call id.*length of 9", {"nine_char_ids": True}),
        (
            r"reasoning_content.*must be passed back|missing reasoning_content",
            {"reasoning_replay": "reasoning_content", "reasoning_required": True},
        ),
        (r"system message must be|only one system message|multiple system messages", {"single_system": True}),
        (r"system role.*not support|does not support .system.|role .system. is not", {"system_role": "user"}),
        (r"invalid field\(s\): text|content must be a string", {"string_content": True}),
        (r"extra_content|thought_signature.*(unknown|not permitted)", {"replay_extra": False}),
        (r"\bstrict\b", {"strict": False}),
    )
)


def lesson(profile: Profile, error: ModelRefused, sent: Mapping[str, object]) -> Profile | None:
    """Return the profile that a refusal teaches, `None` where it teaches nothing new.

    `sent` is the body that was refused.
    """
    for pattern, changes in _LESSONS:
        if pattern.search(error.message):
            learnt = changed(profile, changes)
            if learnt != profile:
                return learnt
    if _REFUSAL.search(error.message):
        for name in _DISPENSABLE:
            if name in sent and re.search(rf"\b{name.replace('_', '[_ ]')}\b", error.message, re.IGNORECASE):
                return changed(profile, {"refuses": profile.refuses | {name}})
    return None
