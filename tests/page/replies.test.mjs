import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { CallCard } from "../../agent/beckon_agent/page/app/chat/call.js";
import { html } from "../../agent/beckon_agent/page/app/html.js";
import { Data, Members } from "../../agent/beckon_agent/page/app/parts/data.js";
import { Progress } from "../../agent/beckon_agent/page/app/parts/progress.js";
import { render } from "../../agent/node_modules/preact/dist/preact.mjs";
import { waitFor } from "./server.mjs";

function drawn(tree) {
    const room = document.createElement("div");
    document.body.append(room);
    render(tree, room);
    return room;
}

const texts = (room, selector) => [...room.querySelectorAll(selector)].map((one) => one.textContent.trim());
const reply = (value) => drawn(html`<${Data} value=${value} label="Reply" />`);

/** Chooses a view of a reply, such as "Chart". */
async function choose(room, name) {
    const button = [...room.querySelectorAll(".switch button")].find((one) => one.textContent === name);
    button.click();
    await waitFor(() => button.getAttribute("aria-pressed") === "true", `${name} is shown`);
}

test("a click sorts a table, numbers from the largest; the next one turns it, and the third restores the order", async () => {
    const room = reply([
        { city: "Rome", people: 3 },
        { city: "Bonn", people: 10 },
        { city: "Oslo", people: null },
    ]);
    const column = (number) => texts(room, `tbody td:nth-child(${number})`);
    const click = async (number, sorting) => {
        const head = room.querySelector(`th:nth-child(${number})`);
        head.querySelector("button").click();
        await waitFor(() => head.getAttribute("aria-sort") === sorting, `sorted ${sorting}`);
    };
    assert.deepEqual(column(2), ["3", "10", "–"]);
    await click(2, "descending");
    assert.deepEqual(column(2), ["10", "3", "–"]);
    await click(1, "ascending");
    assert.deepEqual(column(1), ["Bonn", "Oslo", "Rome"]);
    await click(1, "descending");
    assert.deepEqual(column(1), ["Rome", "Oslo", "Bonn"]);
    await click(1, "none");
    assert.deepEqual(column(1), ["Rome", "Bonn", "Oslo"]);
});

test("a long table shows its first rows, and all of them on request", async () => {
    const room = reply(Array.from({ length: 30 }, (_, index) => ({ id: `row ${index}` })));
    assert.equal(texts(room, "tbody tr").length, 12);
    const button = [...room.querySelectorAll("button")].find((one) =>
        one.textContent.includes("Show all 30 rows"),
    );
    button.click();
    await waitFor(() => texts(room, "tbody tr").length === 30, "all rows are shown");
});

test("things are drawn as bars, whose summary has the least and the most", async () => {
    const room = reply([
        { city: "Rome", people: 3 },
        { city: "Bonn", people: -1 },
    ]);
    await choose(room, "Chart");
    const bars = room.querySelector(".bars");
    assert.equal(bars.getAttribute("aria-label"), "Chart of people, 2 values: from -1 (Bonn) to 3 (Rome)");
    const sizes = [...room.querySelectorAll("rect")].map((one) => [
        one.getAttribute("x"),
        one.getAttribute("width"),
    ]);
    assert.deepEqual(sizes, [
        ["25", "75"],
        ["0", "25"],
    ]);
});

test("dates are drawn as a line, on a scale of round numbers", async () => {
    const room = reply(
        ["2026-01", "2026-02", "2026-03"].map((month, index) => ({ month, sales: 3 + index * 7 })),
    );
    await choose(room, "Chart");
    assert.equal(room.querySelector(".bars"), null);
    assert.deepEqual(texts(room, ".line-chart g text"), ["0", "5", "10", "15", "20"]);
    assert.match(
        room.querySelector(".curve").getAttribute("d"),
        /^M56\.0 [\d.]+L342\.0 [\d.]+L628\.0 [\d.]+$/,
    );
    assert.deepEqual(texts(room, "circle title"), ["2026-01: 3", "2026-02: 10", "2026-03: 17"]);
});

test("a chart of several columns shows the chosen one", async () => {
    const room = reply([
        { city: "Rome", people: 3, trees: 5 },
        { city: "Bonn", people: 1, trees: 6 },
    ]);
    await choose(room, "Chart");
    const choice = room.querySelector(".chart-choice select");
    assert.equal(choice.value, "people");
    choice.value = "trees";
    choice.dispatchEvent(new window.Event("change", { bubbles: true }));
    await waitFor(
        () => room.querySelector(".bars").getAttribute("aria-label").startsWith("Chart of trees"),
        "trees",
    );
});

test("few short values are facts, others are JSON", () => {
    const members = (value) => drawn(html`<${Members} value=${value} label="Arguments" />`);
    const facts = members({ city: "Rome", days: 2, note: null });
    assert.deepEqual(texts(facts, "dt"), ["city", "days", "note"]);
    assert.deepEqual(texts(facts, "dd"), ["Rome", "2", "–"]);
    for (const value of [{ deep: { a: 1 } }, { long: "x".repeat(161) }, {}, [1]]) {
        assert.equal(members(value).querySelector("pre").textContent, JSON.stringify(value, null, 2));
    }
});

test("a picture in a reply is shown", async () => {
    const room = reply({ media_type: "image/png", data_base64: "AQID", width: 1 });
    await waitFor(() => room.querySelector("img.picture"), "the picture is there");
    assert.match(room.querySelector("img").getAttribute("src"), /^blob:/);
    assert.equal(room.querySelector("img").getAttribute("alt"), "Reply");
});

test("progress is a share of a known total, or only a number", () => {
    const progress = (report) => drawn(html`<${Progress} report=${report} label="Progress" />`);
    const known = progress({ progress: 30, total: 40, message: "copying" });
    assert.equal(known.querySelector("progress").value, 0.75);
    assert.equal(known.querySelector(".progress-words").textContent, "30 of 40 · copying");
    const unknown = progress({ progress: 1234.567, total: null, message: "" });
    assert.equal(unknown.querySelector("progress").hasAttribute("value"), false);
    assert.equal(unknown.querySelector(".progress-words").textContent, "1,234.57");
});

test("a card shows the state of its call, and opens by itself for an error", () => {
    const card = (item, more = {}) =>
        drawn(
            html`<${CallCard} run="resp_1" shown=${{ id: "mcp_1", text: "", item: { type: "mcp_call", name: "add", arguments: '{"a":1}', ...item }, ...more }} />`,
        );
    const running = card({ status: "in_progress" }, { report: { progress: 1, total: 2, message: "" } });
    assert.equal(running.querySelector(".badge").textContent.trim(), "Running");
    assert.equal(running.querySelector(".call-words").textContent, "a: 1");
    assert.equal(running.querySelector("progress").value, 0.5);
    assert.equal(running.querySelector(".call-body"), null);

    const done = card({ status: "completed", output: "5" }, { seconds: 1.5 });
    assert.equal(done.querySelector(".badge").textContent.trim(), "Done");
    assert.equal(done.querySelector(".call-time").textContent, "1.5 s");
    assert.equal(done.querySelector(".call-body"), null);

    const error = {
        type: "mcp_tool_execution_error",
        content: { message: "No seat.", reason: "timeout", seat: "7C" },
    };
    const failed = card({ status: "failed", error });
    assert.equal(failed.querySelector(".failure p").textContent, "No seat.");
    assert.equal(failed.querySelector(".failure .badge").textContent, "timeout");
    assert.deepEqual(texts(failed, ".failure dt"), ["seat"]);

    const denied = card({
        status: "failed",
        error: { ...error, content: { reason: "denied", message: "no" } },
    });
    assert.equal(denied.querySelector(".badge").textContent.trim(), "Denied");
    assert.equal(denied.querySelector(".call-body"), null);
});
