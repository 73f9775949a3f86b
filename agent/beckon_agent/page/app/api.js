// Requests to the agent that serves this page. Paths are relative to it: "v1/models", "runs/ID".
import { createParser } from "eventsource-parser";
import { key, wanted } from "./session.js";

/** A request that failed; `message` is the agent's own sentence. `status` is 0 where no answer came. */
export class ApiError extends Error {
    constructor(status, message, { code = "", retryAfter = 0, body = null } = {}) {
        super(message);
        this.name = "ApiError";
        this.status = status;
        this.code = code;
        this.retryAfter = retryAfter;
        this.body = body;
    }
}

export const get = (path, options) => json("GET", path, undefined, options);
export const post = (path, body, options) => json("POST", path, body, options);
export const remove = (path, options) => json("DELETE", path, undefined, options);

/** Asks for the events of a stream; yields the data of each, parsed. Ends with the stream, or at "[DONE]". */
export async function* events(method, path, body, { signal, params } = {}) {
    const response = await request(method, path, body, { signal, params, accept: "text/event-stream" });
    for await (const { data } of arriving(response, signal)) {
        if (data === "[DONE]") return;
        yield JSON.parse(data);
    }
}

/** Asks for an answer that may be told of while it comes into being: `onProgress` gets what is said until then. */
export async function postAndHear(path, body, onProgress, { signal, params } = {}) {
    const response = await request("POST", path, body, { signal, params, accept: "application/json, text/event-stream" });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return broken(response.json(), signal);
    for await (const { event, data } of arriving(response, signal)) {
        const said = JSON.parse(data);
        if (event === "problem") throw failure(said.status, said);
        if (event !== "progress") return said;
        onProgress(said);
    }
    throw new ApiError(0, "The connection broke before the answer came.");
}

async function* arriving(response, signal) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = [];
    const parser = createParser({ onEvent: (event) => waiting.push(event) });
    try {
        for (;;) {
            const { done, value } = await broken(reader.read(), signal);
            if (done) return;
            parser.feed(value);
            const arrived = waiting;
            waiting = [];
            yield* arrived;
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

async function json(method, path, body, options = {}) {
    const response = await request(method, path, body, options);
    const text = await broken(response.text(), options.signal);
    return text ? JSON.parse(text) : null;
}

async function request(method, path, body, { signal, params, accept = "application/json" } = {}) {
    const headers = { accept };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (key.value) headers.authorization = `Bearer ${key.value}`;
    const address = new URL(path.replace(/^\//, ""), document.baseURI);
    address.hash = "";
    for (const [name, value] of Object.entries(params ?? {})) {
        if (value !== undefined && value !== null && value !== "") address.searchParams.set(name, value);
    }
    const sent = { method, headers, signal, cache: "no-store", credentials: "same-origin" };
    if (body !== undefined) sent.body = JSON.stringify(body);
    const response = await broken(fetch(address, sent), signal);
    if (response.ok) return response;
    throw await refused(response);
}

/** Tells a connection that failed from a request that was given up here. */
async function broken(work, signal) {
    try {
        return await work;
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new ApiError(0, "The agent does not answer. Is it running, and is this machine connected?");
    }
}

/** From OpenAI's errors (under v1/) or a problem document (elsewhere). */
async function refused(response) {
    let body = null;
    try {
        body = await response.json();
    } catch {
        // A proxy's page, most likely: its status has to do.
    }
    const retryAfter = Number(response.headers.get("retry-after")) || 0;
    const error = failure(response.status, body, { retryAfter, said: response.statusText });
    if (response.status === 401) wanted.value = error.message;
    return error;
}

function failure(status, body, { retryAfter = 0, said = "" } = {}) {
    const message = body?.error?.message ?? body?.detail ?? body?.title ?? `The answer was ${status} ${said}, without a reason.`;
    return new ApiError(status, message, { code: body?.error?.code ?? body?.type ?? "", retryAfter, body });
}
