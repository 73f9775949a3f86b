// The A2A SDK of Node against an agent with the demo model: BASE_URL is its OpenAI base URL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { Role, TaskState } from "@a2a-js/sdk";
import { ClientFactory, ClientFactoryOptions } from "@a2a-js/sdk/client";

const address = new URL("/", process.env.BASE_URL).href;
const bindings = ["JSONRPC", "HTTP+JSON"];

function connect(binding) {
    const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        preferredTransports: [binding],
    });
    return new ClientFactory(options).createFromUrl(address);
}

function request(text, more = {}) {
    const message = {
        messageId: randomUUID(),
        role: Role.ROLE_USER,
        parts: [{ content: { $case: "text", value: text } }],
        ...more,
    };
    return { message };
}

function answerOf(artifacts) {
    return artifacts.flatMap((artifact) => artifact.parts.map((part) => part.content.value)).join("");
}

for (const binding of bindings) {
    test(`${binding}: a message is a task, which is read, listed, and continued in its context`, async () => {
        const client = await connect(binding);
        const task = await client.sendMessage(request("What is 17% of 2340?"));
        assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
        assert.match(answerOf(task.artifacts), /397\.8/);

        const read = await client.getTask({ tenant: "", id: task.id });
        assert.deepEqual(read.artifacts, task.artifacts);

        const next = await client.sendMessage(request("What is 2 + 3?", { contextId: task.contextId }));
        assert.equal(next.contextId, task.contextId);
        const listed = await client.listTasks({ tenant: "", contextId: task.contextId });
        assert.deepEqual(
            listed.tasks.map((one) => one.id),
            [next.id, task.id],
        );
    });

    test(`${binding}: a stream has the calls, the answer in pieces, and the end`, async () => {
        const client = await connect(binding);
        const calls = [];
        let answer = "";
        let state;
        for await (const { payload } of client.sendMessageStream(request("What is 17% of 2340?"))) {
            if (payload.$case === "artifactUpdate") answer += answerOf([payload.value.artifact]);
            if (payload.$case === "statusUpdate") state = payload.value.status.state;
            if (payload.value.metadata?.toolCall) calls.push(payload.value.metadata.toolCall);
        }
        assert.match(answer, /397\.8/);
        assert.equal(state, TaskState.TASK_STATE_COMPLETED);
        assert.deepEqual(
            calls.map((call) => [call.name, call.state]),
            [
                ["calculator", "started"],
                ["calculator", "done"],
            ],
        );
    });

    test(`${binding}: an error has the cause and the cure`, async () => {
        const client = await connect(binding);
        await assert.rejects(client.getTask({ tenant: "", id: "none" }), /there is no task 'none'/);
    });
}
