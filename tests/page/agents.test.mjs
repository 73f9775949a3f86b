import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    agent,
    agents,
    chooseAgent,
    followAgents,
    loadAgents,
} from "../../agent/beckon_agent/page/app/agents.js";
import { announcement, announceText } from "../../agent/beckon_agent/page/app/live.js";
import { startServer, waitFor } from "./server.mjs";

const { routes, requests } = await startServer();
const models = (...names) => ({ data: names.map((id) => ({ id })) });

test("the chosen agent stays chosen while it is there; without it the first one is used", async () => {
    assert.equal(agent.value, "");
    routes["GET /v1/models"] = models("beckon", "editor");
    await loadAgents();
    assert.equal(agent.value, "beckon");
    chooseAgent("editor");
    assert.equal(agent.value, "editor");
    assert.equal(localStorage.getItem("beckon.agent"), "editor");
    routes["GET /v1/models"] = models("beckon");
    await loadAgents();
    assert.equal(agent.value, "beckon");
    routes["GET /v1/models"] = models("beckon", "editor");
    await loadAgents();
    assert.equal(agent.value, "editor");
});

test("an equal list of agents does not replace the shown one", async () => {
    routes["GET /v1/models"] = models("beckon", "editor");
    await loadAgents();
    const shown = agents.value;
    await loadAgents();
    assert.equal(agents.value, shown);
});

test("the agents are refreshed until the view ends, and an error changes nothing", async (context) => {
    context.mock.timers.enable({ apis: ["setInterval"] });
    routes["GET /v1/models"] = models("beckon", "editor");
    await loadAgents();
    requests.length = 0;
    const stop = followAgents();
    delete routes["GET /v1/models"];
    context.mock.timers.tick(5000);
    await waitFor(() => requests.length === 1, "the agents are requested");
    assert.deepEqual(
        agents.value.map((one) => one.id),
        ["beckon", "editor"],
    );
    routes["GET /v1/models"] = models("beckon", "researcher");
    context.mock.timers.tick(5000);
    await waitFor(() => agents.value[1].id === "researcher", "the new agent is there");
    stop();
    context.mock.timers.tick(20_000);
    assert.equal(requests.length, 2);
});

test("the same announcement twice is read twice", () => {
    announceText("Copied.");
    assert.equal(announcement.value, "Copied.");
    announceText("Copied.");
    assert.notEqual(announcement.value, "Copied.");
    assert.equal(announcement.value.trim(), "Copied.");
});
