"""Where the declarations stand: what was sent stays where it is, so that a provider's cache still fits."""

from collections.abc import Iterable, Sequence


def placed(
    sent: Sequence[str], wanted: Sequence[str], fitting: Sequence[str], room: int, *, steady: bool = False
) -> list[str]:
    """Return at most `room` names, each once.

    `sent` were declared the last time, in that order; `wanted` must be declared as far as there is room;
    `fitting` are the others that fit, the best first. The better half of the room is always for what fits
    now. A quarter is left free in the beginning for what comes later. What comes takes the places of what
    fits least, or stands at the end. With `steady` what only fits takes nobody's place.
    """
    better = fitting[: (room + 1) // 2]
    if steady:
        known = {*sent, *wanted}
        free = max(0, room - len(known))
        better = [name for name in better if name in known] + [n for n in better if n not in known][:free]
    needed = _unique([*wanted, *better])[:room]
    names = _exchanged(_unique(sent), needed, [*needed, *fitting], room)
    there = set(names)
    spare = max(0, room - room // 4 - len(names))
    return [*names, *[name for name in _unique(fitting) if name not in there][:spare]]


def _exchanged(sent: Sequence[str], needed: Sequence[str], order: Sequence[str], room: int) -> list[str]:
    """Return what was sent with what is needed; what has no room any more has gone."""
    known, staying = set(sent), set(needed)
    coming = [name for name in needed if name not in known]
    rank = {name: place for place, name in reversed(list(enumerate(order)))}
    places = [(rank.get(name, len(order)), place) for place, name in enumerate(sent) if name not in staying]
    excess = max(0, len(sent) + len(coming) - room)
    going = {place for _, place in sorted(places, reverse=True)[:excess]}
    arriving = iter(coming)
    names = [next(arriving, None) if place in going else name for place, name in enumerate(sent)]
    return [*[name for name in names if name is not None], *arriving]


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
