"""All dialects by name, and a guess from a model's name."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from beckon_agent.dialects.base import Dialect
from beckon_agent.dialects.chatglm import CHATGLM3, CHATGLM3_OBSERVATION, GLM4
from beckon_agent.dialects.deepseek import DEEPSEEK
from beckon_agent.dialects.hermes import HERMES, QWEN3_CODER
from beckon_agent.dialects.llama3 import LLAMA3
from beckon_agent.dialects.mistral import MISTRAL
from beckon_agent.dialects.native import NATIVE
from beckon_agent.dialects.prompted import PROMPTED
from beckon_agent.dialects.pythonic import PYTHONIC

_ALL: Final[tuple[Dialect, ...]] = (
    NATIVE, PROMPTED, CHATGLM3, CHATGLM3_OBSERVATION,
    HERMES, LLAMA3, MISTRAL, PYTHONIC, DEEPSEEK, QWEN3_CODER, GLM4,
)  # fmt: skip

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({one.name: one for one in _ALL})

_GUESSES: Final = (
    (r"chatglm-?3", CHATGLM3),
    (r"glm-?[4-9]", GLM4),
    (r"deepseek", DEEPSEEK),
    (r"qwen-?3(\.\d+)?-?coder|qwen-?3\.5", QWEN3_CODER),
    (r"qwen|qwq|hermes", HERMES),
    (r"llama-?4", PYTHONIC),
    (r"llama-?3", LLAMA3),
    (r"(mis|mix|minis|codes|devs|magis|pix)tral", MISTRAL),
)


def dialect_named(name: str) -> Dialect:
    """Return the dialect of this name; raise ValueError with all names."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ValueError(f"there is no dialect {name!r}; choose one of: {', '.join(DIALECTS)}") from None


def guess_dialect(model_name: str) -> Dialect:
    """Return the text dialect of a model's training, by the model's name.

    For unknown names it is `prompted`.
    """
    for pattern, found in _GUESSES:
        if re.search(pattern, model_name, re.IGNORECASE):
            return found
    return PROMPTED
