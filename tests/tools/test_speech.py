import io
import os
import shutil
import wave
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from beckon_tools.shipped.speech import MAX_CHARACTERS, build, halve_rate, speech_tool, voice_name
from tests.tools.serving import call, calling, configured

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


def sound(samples: bytes, rate: int = 22050) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return written.getvalue()


def program(folder: Path, script: str) -> str:
    path = folder / "speaker"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def speak(arguments: dict[str, str], program: str = "espeak-ng", seconds: float = 20) -> dict[str, Any]:
    async with calling(speech_tool(program, seconds)) as caller:
        result = await caller.result(call("text-to-speech", arguments))
    assert isinstance(result, dict)
    return result


def seconds(result: dict[str, Any]) -> float:
    assert result["media_type"] == "audio/wav"
    with wave.open(io.BytesIO(b64decode(result["data_base64"]))) as file:
        return float(file.getnframes() / file.getframerate())


@needs_espeak
async def test_the_real_program_speaks_and_slowly_takes_longer() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    slow = await speak({"text": text, "voice": "female", "speed": "slow"})
    fast = await speak({"text": text, "voice": "de+male", "speed": "fast"})
    assert seconds(slow) > seconds(fast) > 1


@needs_espeak
async def test_the_longest_text_fits_into_a_reply_at_the_slowest() -> None:
    text = ("the quick brown fox jumps over the lazy dog " * 10)[:MAX_CHARACTERS]
    assert seconds(await speak({"text": text, "speed": "slow"})) > 10


@needs_espeak
async def test_the_text_is_never_read_as_an_option_or_a_command(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for text in ("--help", f"-w {marker}", f"$(touch {marker}); `touch {marker}`", "hé 你好 \x00"):
        assert seconds(await speak({"text": text})) > 0
    assert not marker.exists()


@needs_espeak
async def test_a_voice_that_is_unknown_is_a_tool_error() -> None:
    result = await speak({"text": "a", "voice": "zz"})
    assert "voice does not exist" in result["error"]["message"]


async def test_a_program_that_is_not_installed_is_a_clear_tool_error() -> None:
    result = await speak({"text": "a"}, program="/nowhere/espeak-ng")
    assert result == {
        "error": {
            "reason": "tool_failed",
            "message": "speech is not available here: the program espeak-ng is not installed",
        }
    }


async def test_a_program_that_fails_shows_its_first_line(tmp_path: Path) -> None:
    speaker = program(tmp_path, "cat >/dev/null; echo 'no sound card' >&2; echo more >&2; exit 1")
    result = await speak({"text": "a"}, program=speaker)
    assert result["error"]["message"] == "espeak-ng could not speak: no sound card"


async def test_a_program_that_hangs_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    speaker = program(tmp_path, f"echo $$ > {pid}; exec sleep 60")
    result = await speak({"text": "a"}, program=speaker, seconds=0.5)
    assert result["error"]["message"] == "speaking took longer than 0.5 seconds"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "text: "),
        ({"text": ""}, "text: "),
        ({"text": "a" * (MAX_CHARACTERS + 1)}, "text: "),
        ({"text": "a", "voice": "--help"}, "voice: "),
        ({"text": "a", "voice": "../../etc/passwd"}, "voice: "),
        ({"text": "a", "speed": "lightning"}, "speed: "),
    ],
)
async def test_bad_arguments_start_nothing(arguments: dict[str, str], named: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    speaker = program(tmp_path, f"touch {started}")
    async with calling(build(configured(espeak_program=speaker))) as caller:
        assert named in await caller.refusal(call("text-to-speech", arguments))
    assert not started.exists()


@pytest.mark.parametrize(
    ("voice", "name"),
    [("male", "en+m3"), ("female", "en+f2"), ("Female", "en+f2"), ("de", "de"), ("fr-be+female", "fr-be+f2")],
)
def test_voices_are_named_as_the_program_does(voice: str, name: str) -> None:
    assert voice_name(voice) == name


def test_halving_the_rate_keeps_length_and_level() -> None:
    whole = sound((b"\x00\x10" * 2 + b"\x00\x20" * 2) * 1000)
    with wave.open(io.BytesIO(halve_rate(whole))) as half:
        assert (half.getframerate(), half.getnframes(), half.getnchannels()) == (11025, 2000, 1)
        assert half.readframes(2) == b"\x00\x10\x00\x20"


def test_a_header_for_an_endless_stream_is_put_right() -> None:
    endless = bytearray(sound(b"\x01\x00" * 100))
    endless[4:8] = endless[40:44] = b"\x00\xf0\xff\x7f"
    with wave.open(io.BytesIO(halve_rate(bytes(endless)))) as half:
        assert half.getnframes() == 50
