import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { attach, contentOf, shownContent } from "../../agent/beckon_agent/page/app/chat/attachments.js";
import { page } from "./document.mjs";

const { File } = page.window;

test("a text file is quoted in the message, and found again in it", async () => {
    const attached = await attach(new globalThis.File(["a,b\n1,2"], 'my "list".csv', { type: "text/csv" }));
    assert.equal(attached.kind, "text");
    const content = contentOf("Sum this.", [attached]);
    assert.deepEqual(shownContent(content), {
        text: "Sum this.",
        files: [{ kind: "text", name: "my 'list'.csv", text: "a,b\n1,2" }],
    });
});

test("a text file is known by its name where it has no type", async () => {
    const { part } = await attach(new globalThis.File(["print()"], "job.PY"));
    assert.deepEqual(part, { type: "input_text", text: '\n\n<file name="job.PY">\nprint()\n</file>' });
});

test("pictures, sounds and other files become parts of their own type", async () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const read = (name, type) => attach(new File([bytes], name, { type }));
    assert.deepEqual((await read("cat.png", "image/png")).part, {
        type: "input_image",
        detail: "auto",
        image_url: "data:image/png;base64,AQID",
    });
    assert.deepEqual((await read("hello.mp3", "audio/mpeg")).part, {
        type: "input_audio",
        input_audio: { data: "AQID", format: "mp3" },
    });
    assert.deepEqual((await read("paper.pdf", "application/pdf")).part, {
        type: "input_file",
        filename: "paper.pdf",
        file_data: "data:application/pdf;base64,AQID",
    });
});

test("a file that is too large is refused with its name", async () => {
    const text = await attach(new globalThis.File(["x".repeat(400_001)], "log.txt", { type: "text/plain" }));
    assert.equal(text.problem, "log.txt is too long for a message (over 400 kB of text).");
    const image = await attach(new File([new Uint8Array(6_000_001)], "big.png", { type: "image/png" }));
    assert.equal(image.problem, "big.png is too large to send (over 6 MB).");
});

test("a message without files is its text", () => {
    assert.equal(contentOf("Hello", []), "Hello");
    assert.deepEqual(shownContent("Hello"), { text: "Hello", files: [] });
    assert.deepEqual(shownContent(undefined), { text: "", files: [] });
});

test("stored parts are shown as what they are", () => {
    const { text, files } = shownContent([
        { type: "input_text", text: "Look:" },
        { type: "input_image", image_url: "data:image/png;base64,AQID" },
        { type: "input_audio", input_audio: { data: "AQID", format: "wav" } },
        { type: "input_file" },
    ]);
    assert.equal(text, "Look:");
    assert.deepEqual(files, [
        { kind: "image", name: "Image", url: "data:image/png;base64,AQID" },
        { kind: "sound", name: "Sound", url: "data:audio/wav;base64,AQID" },
        { kind: "file", name: "File" },
    ]);
});
