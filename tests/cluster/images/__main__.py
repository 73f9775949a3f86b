"""Build the images that have changed, and print where they are and how large."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.images.archive import measure
from tests.cluster.images.building import built_images
from tests.cluster.images.inputs import reference
from tests.cluster.machine.commands import ClusterError, say
from tests.cluster.machine.places import places


def main() -> int:
    """Return 0, or 1 with the reason in one line where an image cannot be built."""
    try:
        tars = built_images()
    except ClusterError as error:
        sys.stderr.write(f"images: {error}\n")
        return 1
    for line in table(tars, places().cache / "images" / "packed.json"):
        say(line)
    return 0


def table(tars: Mapping[str, Path], known: Path) -> list[str]:
    """The sizes of the images in megabytes; `known` is a file that remembers what took long to find."""
    packed: dict[str, int] = json.loads(known.read_text()) if known.exists() else {}
    lines = [f"{'image':32}  on disk  over base   packed  upgrade   tar"]
    for image, tar in tars.items():
        size = measure(tar, packed)
        columns = ((size.plain, 5), (size.over_base, 7), (size.packed, 5), (size.upgrade, 5))
        numbers = " ".join(f"{value / 1e6:{width}.1f} MB" for value, width in columns)
        lines.append(f"{reference(image):32} {numbers}   {tar}")
    known.write_text(json.dumps(packed))
    return lines


if __name__ == "__main__":
    sys.exit(main())
