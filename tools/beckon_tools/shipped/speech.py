"""The tool `text-to-speech`: real audio from the program espeak-ng."""

import asyncio
import contextlib
import io
import logging
import wave
from array import array
from typing import Annotated, Literal

from pydantic import Field

from beckon_tools.answers import Media
from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings

logger = logging.getLogger(__name__)

Speed = Literal["slow", "medium", "fast"]

MAX_CHARACTERS = 400
_WORDS_PER_MINUTE: dict[str, int] = {"slow": 120, "medium": 170, "fast": 240}
_VARIANTS = {"male": "+m3", "female": "+f2"}


def build(settings: Settings) -> AnyTool:
    """Return the tool for the program that the settings name."""
    return speech_tool(settings.espeak_program)


def speech_tool(program: str, seconds: float = 20) -> AnyTool:
    """Return the tool for a program, which may take so many seconds for one text."""

    @tool(type="text-to-speech", hints=Hints(read_only=True, idempotent=True))
    async def text_to_speech(
        text: Annotated[
            str,
            Field(description="The text to speak", min_length=1, max_length=MAX_CHARACTERS),
        ],
        voice: Annotated[
            str,
            Field(
                description='"male" or "female", or a language with or without one: "de", "fr+female"',
                pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}(\+(male|female))?$",
            ),
        ] = "male",
        speed: Annotated[Speed, Field(description="How fast to speak")] = "medium",
    ) -> Media:
        """Convert text to speech; the answer is a WAV sound."""
        arguments = ["--stdout", "--stdin", "-b", "1", "-v", voice_name(voice)]
        arguments += ["-s", str(_WORDS_PER_MINUTE[speed])]
        sound = await _run_program(program, seconds, arguments, text)
        return Media("audio/wav", await asyncio.to_thread(halve_rate, sound))

    return text_to_speech


def voice_name(voice: str) -> str:
    """Return espeak-ng's name for a voice: "female" is "en+f2", "de+male" is "de+m3"."""
    language, _, speaker = voice.lower().partition("+")
    if language in _VARIANTS:
        language, speaker = "en", language
    return language + _VARIANTS.get(speaker, "")


async def _run_program(program: str, seconds: float, arguments: list[str], text: str) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        logger.warning("%s does not start: %s", program, error)
        raise ToolError("speech is not available here: the program espeak-ng is not installed") from None
    try:
        async with asyncio.timeout(seconds):
            sound, complaint = await process.communicate(text.encode())
    except TimeoutError:
        raise ToolError(f"speaking took longer than {seconds:g} seconds") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode or not sound.startswith(b"RIFF"):
        lines = complaint.decode(errors="replace").split("\n")
        raise ToolError(f"espeak-ng could not speak: {lines[0][:200] or 'it gave no sound'}")
    return sound


def halve_rate(sound: bytes) -> bytes:
    """Return a mono 16-bit WAV at half its sample rate, its header telling its true size.

    espeak-ng writes 44 kB for each second, and a header for an endless stream; brokers take
    messages of about a megabyte.
    """
    with wave.open(io.BytesIO(sound)) as source:
        rate = source.getframerate()
        samples = array("h", source.readframes(len(sound)))
    pairs = zip(samples[::2], samples[1::2], strict=False)
    halved = array("h", ((first + second) >> 1 for first, second in pairs))
    written = io.BytesIO()
    with wave.open(written, "wb") as half:
        half.setnchannels(1)
        half.setsampwidth(2)
        half.setframerate(rate // 2)
        half.writeframes(halved.tobytes())
    return written.getvalue()
