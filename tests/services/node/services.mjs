// Services with the CloudEvents SDK for Node: one path for each.
import { createServer } from "node:http";
import { CloudEvent, HTTP } from "cloudevents";

function replyTo(call, extensions) {
    return new CloudEvent({
        source: "/services/node",
        type: `${call.type}.done`,
        data: { greeting: `Hello ${call.data.name}` },
        ...extensions,
    });
}

const answers = {
    "/node": (call) => HTTP.binary(replyTo(call, {})),
    "/node-replyid": (call) => HTTP.structured(replyTo(call, { replyid: call.correlationid })),
};

createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) {
        chunks.push(chunk);
    }
    const call = HTTP.toEvent({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    const { headers, body } = answers[request.url](call);
    response.writeHead(200, headers).end(body);
}).listen(Number(process.env.PORT), "127.0.0.1");
