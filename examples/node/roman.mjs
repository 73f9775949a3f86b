// A tool in JavaScript: an HTTP server that answers a CloudEvent with a CloudEvent.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

const SIGNS = Object.entries({
    M: 1000,
    CM: 900,
    D: 500,
    CD: 400,
    C: 100,
    XC: 90,
    L: 50,
    XL: 40,
    X: 10,
    IX: 9,
    V: 5,
    IV: 4,
    I: 1,
});

function writeRoman(number) {
    let [rest, roman] = [number, ""];
    for (const [sign, value] of SIGNS) {
        roman += sign.repeat(rest / value);
        rest %= value;
    }
    return roman;
}

/** Returns the data of the reply. An error with a reason goes to the model, which may correct its call. */
function answer({ number }) {
    if (Number.isInteger(number) && number >= 1 && number <= 3999) return { roman: writeRoman(number) };
    return { error: { reason: "invalid_arguments", message: "number: send 1 to 3999" } };
}

const server = createServer(async (request, response) => {
    if (request.method !== "POST") return response.end(); // no call: the platform looks at /readyz
    const call = await json(request).catch(() => ({}));
    response.writeHead(200, {
        "content-type": "application/json",
        "ce-specversion": "1.0",
        "ce-id": randomUUID(),
        "ce-source": "/examples/node",
        "ce-type": "example.roman.node.done",
        "ce-replyid": request.headers["ce-correlationid"] ?? "",
    });
    response.end(JSON.stringify(answer(call ?? {})));
});

server.listen(Number(process.env.PORT ?? 8080));
process.on("SIGTERM", () => server.close());
