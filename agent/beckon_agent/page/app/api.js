// Requests to the agent that serves this page. Paths are relative to it: "v1/models", "runs/ID".
import { createParser } from "eventsource-parser";
import { parseJson } from "./exact-json.js";
import { key, wanted } from "./session.js";

/** @import { DeleteAnswer, ErrorDocument, GetAnswer, PostAnswer, ProblemDocument, ProgressDocument } from "beckon-api" */
/** @import { CallEvent, StreamEvent } from "beckon-streams" */
/** @import { EventSourceMessage } from "eventsource-parser" */

/** @typedef {Record<string, string | number | boolean | null | undefined>} Params */
/** @typedef {{ params?: Params, signal?: AbortSignal }} Options */
/** @typedef {Partial<ErrorDocument> & Partial<ProblemDocument> & { problems?: string[], tools?: string[] }} ErrorBody */

const AGAIN_MS = 300;

/** A request that failed; `message` is the agent's own sentence. `status` is 0 where no answer came. */
export class ApiError extends Error {
    /**
     * @param {number} status
     * @param {string} message
     * @param {{ code?: string, retryAfter?: number, body?: ErrorBody | null, cause?: unknown }} [details]
     */
    constructor(status, message, { code = "", retryAfter = 0, body = null, cause } = {}) {
        super(message, { cause });
        this.name = "ApiError";
        this.status = status;
        this.code = code;
        this.retryAfter = retryAfter;
        this.body = body;
    }
}

/**
 * @template {string} Path
 * @param {Path} path
 * @param {Options} [options]
 * @returns {Promise<GetAnswer<Path>>}
 */
export const get = (path, options) => json("GET", path, undefined, options);
/**
 * @template {string} Path
 * @param {Path} path
 * @param {unknown} [body]
 * @param {Options} [options]
 * @returns {Promise<PostAnswer<Path>>}
 */
export const post = (path, body, options) => json("POST", path, body, options);
/**
 * @template {string} Path
 * @param {Path} path
 * @param {Options} [options]
 * @returns {Promise<DeleteAnswer<Path>>}
 */
export const remove = (path, options) => json("DELETE", path, undefined, options);

/**
 * Requests a stream; yields the data of each, parsed. Ends with the stream, or at "[DONE]".
 * @template {string} Path
 * @param {"GET" | "POST"} method
 * @param {Path} path
 * @param {unknown} [body]
 * @param {Options} [options]
 * @returns {AsyncGenerator<StreamEvent<Path>, void, undefined>}
 */
export async function* events(method, path, body, { signal, params } = {}) {
    const response = await request(method, path, body, { signal, params, accept: "text/event-stream" });
    for await (const { data } of arriving(response, signal)) {
        if (data === "[DONE]") return;
        yield parseJson(data);
    }
}

/**
 * Sends a request that reports its progress; `onProgress` takes each report before the answer.
 * @template {string} Path
 * @param {Path} path
 * @param {unknown} body
 * @param {(report: ProgressDocument) => void} onProgress
 * @param {Options} [options]
 * @returns {Promise<PostAnswer<Path>>}
 */
export async function postWithProgress(path, body, onProgress, { signal, params } = {}) {
    const response = await request("POST", path, body, {
        signal,
        params,
        accept: "application/json, text/event-stream",
    });
    if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
        return broken(response.text().then(parseJson), signal);
    for await (const { event, data } of arriving(response, signal)) {
        const received = parseJson(data);
        if (event === "problem") throw failure(received.status, received);
        if (event !== "progress") return received;
        onProgress(received);
    }
    throw new ApiError(0, "The connection broke before the answer came.");
}

/**
 * @param {Response} response
 * @param {AbortSignal} [signal]
 */
async function* arriving(response, signal) {
    if (!response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    /** @type {EventSourceMessage[]} */
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
        reader.cancel().catch(() => {
            // The connection is gone already.
        });
    }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {Options} [options]
 */
async function json(method, path, body, options = {}) {
    const response = await request(method, path, body, options);
    const text = await broken(response.text(), options.signal);
    return text ? parseJson(text) : null;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {Options & { accept?: string }} [options]
 */
async function request(method, path, body, { signal, params, accept = "application/json" } = {}) {
    /** @type {Record<string, string>} */
    const headers = { accept };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (key.value) headers.authorization = `Bearer ${key.value}`;
    const address = new URL(path.replace(/^\//, ""), document.baseURI);
    address.hash = "";
    for (const [name, value] of Object.entries(params ?? {})) {
        if (value !== undefined && value !== null && value !== "")
            address.searchParams.set(name, String(value));
    }
    /** @type {RequestInit} */
    const sent = { method, headers, signal, cache: "no-store", credentials: "same-origin" };
    if (body !== undefined) sent.body = JSON.stringify(body);
    const response = await broken(fetchPatiently(address, sent), signal);
    if (response.ok) return response;
    throw await refused(response);
}

/**
 * Fetches, and reads once more if no answer came. A browser fails all requests that wait for a connection when the
 * network of its machine changes, as it does with each container that starts. To read again is safe (RFC 9110, 9.2.2).
 * @param {URL} address
 * @param {RequestInit} sent
 */
async function fetchPatiently(address, sent) {
    try {
        return await fetch(address, sent);
    } catch (error) {
        if (sent.method !== "GET" || sent.signal?.aborted) throw error;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        return fetch(address, sent);
    }
}

/**
 * Reports a failed connection as an error of the API; a request that was aborted here is none.
 * @template T
 * @param {Promise<T>} work
 * @param {AbortSignal} [signal]
 */
async function broken(work, signal) {
    try {
        return await work;
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new ApiError(0, "The agent does not answer. Is it running, and is this machine connected?", {
            cause: error,
        });
    }
}

/**
 * From OpenAI's errors (under v1/) or a problem document (elsewhere).
 * @param {Response} response
 */
async function refused(response) {
    let body = null;
    try {
        body = await response.json();
    } catch {
        // A proxy's page, most likely: its status has to do.
    }
    const retryAfter = Number(response.headers.get("retry-after")) || 0;
    const error = failure(response.status, body, { retryAfter, statusText: response.statusText });
    if (response.status === 401) wanted.value = error.message;
    return error;
}

/**
 * @param {number} status
 * @param {ErrorBody | null} body
 * @param {{ retryAfter?: number, statusText?: string }} [details]
 */
function failure(status, body, { retryAfter = 0, statusText = "" } = {}) {
    const message =
        body?.error?.message ??
        body?.detail ??
        body?.title ??
        `The answer was ${status} ${statusText}, without a reason.`;
    return new ApiError(status, message, { code: body?.error?.code ?? body?.type ?? "", retryAfter, body });
}

/**
 * Returns what was thrown as an error.
 *
 * @param {unknown} thrown
 */
export function toError(thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/**
 * Returns the status of an error of the API, `undefined` for other errors.
 *
 * @param {unknown} error
 */
export function statusOf(error) {
    return error instanceof ApiError ? error.status : undefined;
}
