// Files as the API takes them, and messages with files as the page shows them.
import { isObject } from "../parts/rows.js";

/** @typedef {{ [name: string]: unknown }} Part */
/** @typedef {string | Part[]} Content */
/** @typedef {{ name: string, kind: "image" | "sound" | "file" | "text", part: Part }} AttachedFile */
/** @typedef {{ name: string, kind: AttachedFile["kind"], url?: string, text?: string }} ShownFile */
/** @typedef {{ name: string, problem: string }} RefusedFile */

const TEXTS = /^text\/|json|xml|yaml|javascript|csv|x-sh|sql|toml/;
const TEXT_NAMES =
    /\.(txt|md|csv|tsv|json|jsonl|ya?ml|xml|html?|css|js|ts|py|go|rs|java|c|h|cpp|sh|sql|toml|ini|log)$/i;
/** @type {Record<string, string>} */
const SOUNDS = { "audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3" };
const MOST_TEXT = 400_000;
const MOST_BYTES = 6_000_000;

// A text file goes into the text of the message, since every model reads that; between these it is found again.
const QUOTED = /\n*<file name="([^"]*)">\n([\s\S]*?)\n<\/file>/g;

/**
 * Reads a file; returns { name, kind, part }, or { name, problem } where it cannot be sent.
 * @param {File} file
 * @returns {Promise<AttachedFile | RefusedFile>}
 */
export async function attach(file) {
    const name = file.name || "pasted";
    if (SOUNDS[file.type])
        return limited(name, file, (data) => ({
            name,
            kind: "sound",
            part: {
                type: "input_audio",
                input_audio: { data: data.split(",")[1], format: SOUNDS[file.type] },
            },
        }));
    if (file.type.startsWith("image/"))
        return limited(name, file, (data) => ({
            name,
            kind: "image",
            part: { type: "input_image", detail: "auto", image_url: data },
        }));
    if (TEXTS.test(file.type) || TEXT_NAMES.test(name)) {
        if (file.size > MOST_TEXT)
            return { name, problem: `${name} is too long for a message (over 400 kB of text).` };
        const text = await file.text();
        const quoted = `\n\n<file name="${name.replaceAll('"', "'")}">\n${text}\n</file>`;
        return { name, kind: "text", part: { type: "input_text", text: quoted } };
    }
    return limited(name, file, (data) => ({
        name,
        kind: "file",
        part: { type: "input_file", filename: name, file_data: data },
    }));
}

/**
 * The content of a message: a string where there is nothing but text.
 * @param {string} text
 * @param {AttachedFile[]} attached
 * @returns {Content}
 */
export function contentOf(text, attached) {
    if (attached.length === 0) return text;
    return [{ type: "input_text", text }, ...attached.map((one) => one.part)];
}

/**
 * What a message shows: its words, and its files as { name, kind, url?, text? }.
 * @param {Content | undefined} content
 */
export function shownContent(content) {
    const parts = typeof content === "string" ? [{ type: "input_text", text: content }] : (content ?? []);
    /** @type {ShownFile[]} */
    const files = [];
    let text = "";
    for (const part of parts) {
        if (part.type === "input_image")
            files.push({ kind: "image", name: "Image", url: textOf(part.image_url) });
        else if (part.type === "input_audio") files.push(sound(part.input_audio));
        else if (part.type === "input_file")
            files.push({ kind: "file", name: textOf(part.filename) || "File" });
        else text += textOf(part.text);
    }
    text = text.replace(QUOTED, (_, name, quoted) => {
        files.push({ kind: "text", name, text: quoted });
        return "";
    });
    return { text, files };
}

/**
 * @param {unknown} audio
 * @returns {ShownFile}
 */
function sound(audio) {
    const { data, format } = isObject(audio) ? audio : {};
    const type = format === "mp3" ? "audio/mpeg" : "audio/wav";
    return { kind: "sound", name: "Sound", url: `data:${type};base64,${data}` };
}

/** @param {unknown} value */
const textOf = (value) => (typeof value === "string" ? value : "");

/**
 * @param {string} name
 * @param {File} file
 * @param {(data: string) => AttachedFile} made
 * @returns {Promise<AttachedFile | RefusedFile>}
 */
async function limited(name, file, made) {
    if (file.size > MOST_BYTES) return { name, problem: `${name} is too large to send (over 6 MB).` };
    return made(await dataUrl(file));
}

/**
 * @param {File} file
 * @returns {Promise<string>}
 */
function dataUrl(file) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(String(reader.result));
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(file);
    });
}
