// An HTTP server on loopback in the place of an agent, and the page's document at its address.
import { createServer } from "node:http";
import { after } from "node:test";
import { page } from "./document.mjs";

/**
 * Starts the server for one test file. A route is "GET /path": a document to send as JSON, or a function of
 * (request, response). Returns the routes, to be changed by tests, and the requests so far.
 */
export async function startServer(routes = {}) {
    const requests = [];
    const server = createServer(async (request, response) => {
        const { pathname, searchParams } = new URL(request.url, "http://agent.test");
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        const text = Buffer.concat(chunks).toString();
        const received = {
            route: `${request.method} ${pathname}`,
            query: Object.fromEntries(searchParams),
            headers: request.headers,
            body: text ? JSON.parse(text) : undefined,
        };
        requests.push(received);
        const answer = routes[received.route];
        if (answer === undefined) sendJson(response, { title: "Not found", detail: received.route }, 404);
        else if (typeof answer === "function") answer(received, response);
        else sendJson(response, answer);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    page.reconfigure({ url: `http://127.0.0.1:${server.address().port}/` });
    after(() => {
        server.closeAllConnections();
        server.close();
    });
    return { routes, requests };
}

export function sendJson(response, document, status = 200, headers = {}) {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(document));
}

/** Sends events of a stream; each is its data, or [name, data]. */
export function sendEvents(response, ...events) {
    if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) {
        const [name, data] = Array.isArray(event) ? event : [undefined, event];
        response.write(`${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
    }
}

/** Waits until a condition holds; fails with its description after some seconds. */
export async function waitFor(condition, description) {
    for (const end = Date.now() + 5000; Date.now() < end; ) {
        if (condition()) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error(`waited in vain: ${description}`);
}
