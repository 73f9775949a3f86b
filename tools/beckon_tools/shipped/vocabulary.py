"""The words by which people ask about the chemical elements, and the columns and values they mean."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from beckon_tools.shipped.elements import rows

# Regular expressions by column, the longest phrases first; all text is lower case by then.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "melting_point_k": r"(?:melting|freezing) (?:points?|temperatures?)|melting",
        "boiling_point_k": r"boiling (?:points?|temperatures?)|boiling",
        "density_g_cm3": r"densit(?:y|ies)",
        "electronegativity": r"electronegativit(?:y|ies)",
        "number": r"atomic numbers?|number of protons|protons",
        "atomic_mass": r"atomic (?:mass|masses|weights?)|mass|masses|weights?",
        "discovered": r"(?:discovery|discovered) (?:years?|dates?)|(?:years?|dates?) of discovery|discovery",
    }
)
FACTS: Mapping[str, str] = MappingProxyType(
    {
        "symbol": r"(?:chemical )?symbols?",
        "category": r"category|categories|family|families|kinds?|types?",
        "group_number": r"groups?|columns?",
        "period": r"periods?|rows?",
        "block": r"blocks?",
        "phase": r"phases?|states?(?: of matter)?",
        "discovered": r"discovered|found",
    }
)

# What is told by an adjective: column, and the direction of "most".
ADJECTIVES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "heavi": ("atomic_mass", "DESC"),
        "light": ("atomic_mass", "ASC"),
        "dens": ("density_g_cm3", "DESC"),
    }
)
PLAIN_ADJECTIVES: Mapping[str, str] = MappingProxyType(
    {"heavy": "atomic_mass", "dense": "density_g_cm3", "electronegative": "electronegativity"}
)

METALS = (
    "alkali metal",
    "alkaline earth metal",
    "transition metal",
    "post-transition metal",
    "lanthanide",
    "actinide",
)
# Tried in this order: "metals" alone comes after every family that has it in its name.
FILTERS: Mapping[str, str] = MappingProxyType(
    {
        r"noble gas(?:es)?": "category = 'noble gas'",
        r"alkaline earth(?: metals?)?s?": "category = 'alkaline earth metal'",
        r"alkali(?: metals?)?": "category = 'alkali metal'",
        r"(?:post[- ]transition|poor) metals?": "category = 'post-transition metal'",
        r"transition (?:metals?|elements?)": "category = 'transition metal'",
        r"metalloids?|semi-?metals?": "category = 'metalloid'",
        r"non-?metals?": "category IN ('nonmetal', 'noble gas', 'halogen')",
        r"halogens?": "category = 'halogen'",
        r"lanthan(?:ide|oid)s?": "category = 'lanthanide'",
        r"actin(?:ide|oid)s?": "category = 'actinide'",
        r"metals?|metallic": f"category IN ({', '.join(repr(name) for name in METALS)})",
        r"gas(?:es|eous)?": "phase = 'gas'",
        r"liquids?": "phase = 'liquid'",
        r"solids?": "phase = 'solid'",
        r"(?:non-?|not )radioactive|stable": "radioactive = 0",
        r"radioactive|unstable": "radioactive = 1",
        r"(?:known )?(?:since|in|from) (?:antiquity|ancient times)": "discovered IS NULL",
    }
)

DIMENSIONS: Mapping[str, str] = MappingProxyType(
    {name: FACTS[name] for name in ("category", "group_number", "period", "block", "phase")}
)

NUMBER_WORDS: Mapping[str, int] = MappingProxyType(
    {
        word: value
        for value, word in enumerate(
            ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 2
        )
    }
)

# Words that carry nothing once the rest of a question is understood.
SILENT = re.compile(
    "a|about|all|an|and|any|are|as|at|be|been|can|chemical|compare|data|database|details|did|do|does|elements?|"
    "exist|existing|for|from|full|get|give|has|have|having|how|in|info|information|into|is|its?|kelvin|known|"
    "list|me|much|named?|names|of|on|ones?|or|periodic|please|property|properties|room|show|table|tell|"
    "temperature|than|that|the|theirs?|there|these|they|this|to|us|values?|was|were|what|when|which|whose?|"
    "with|years?|you"
)


def _names() -> dict[str, str]:
    names = {str(row[2]).lower(): str(row[2]) for row in rows()}
    return names | {"aluminum": "Aluminium", "cesium": "Caesium", "sulphur": "Sulfur", "wolfram": "Tungsten"}


NAMES: Mapping[str, str] = MappingProxyType(_names())
SYMBOLS: Mapping[str, str] = MappingProxyType({str(row[1]): str(row[2]) for row in rows()})
