import assert from "node:assert/strict";
import { test } from "node:test";
import { isDrawable } from "../../agent/beckon_agent/page/app/parts/chart.js";
import { isShowy } from "../../agent/beckon_agent/page/app/parts/data.js";
import { parsed } from "../../agent/beckon_agent/page/app/parts/json.js";
import { numericColumns, tableIn } from "../../agent/beckon_agent/page/app/parts/rows.js";
import { written } from "../../agent/beckon_agent/page/app/parts/table.js";
import { ago, duration } from "../../agent/beckon_agent/page/app/parts/times.js";

test("a duration is written in the unit that fits it", () => {
    const words = [0, 0.0004, 0.3401, 0.9994, 1, 2.44, 9.94, 10, 59.4, 60, 185, 3600].map(duration);
    assert.deepEqual(words, [
        "0 ms",
        "0 ms",
        "340 ms",
        "999 ms",
        "1.0 s",
        "2.4 s",
        "9.9 s",
        "10 s",
        "59 s",
        "1 min 0 s",
        "3 min 5 s",
        "60 min 0 s",
    ]);
});

test("a time is written as its age, in the largest whole unit", () => {
    const now = 1_700_000_000;
    assert.equal(ago(now, now), "just now");
    assert.equal(ago(now - 59, now), "just now");
    assert.equal(ago(now - 60, now), "1 minute ago");
    assert.equal(ago(now - 7_199, now), "1 hour ago");
    assert.equal(ago(now - 86_400, now), "yesterday");
    assert.equal(ago(now - 7 * 86_400, now), "7 days ago");
    assert.equal(ago(now - 8 * 86_400, now), new Date((now - 8 * 86_400) * 1000).toLocaleDateString());
});

test("a text that is JSON is parsed, and any other text stays as it is", () => {
    assert.deepEqual(parsed('{"a": [1]}'), { a: [1] });
    assert.equal(parsed("not {json"), "not {json");
    const value = { already: true };
    assert.equal(parsed(value), value);
});

test("a list of objects is a table with all their columns", () => {
    const value = [{ city: "Rome", people: 3 }, { city: "Bonn" }];
    assert.deepEqual(tableIn(value), { rows: value, columns: ["city", "people"], rest: {} });
});

test("the only list of rows in an object is its table, and its other members are the rest", () => {
    const value = { rows: [{ a: 1 }], total: 1, tags: ["x"] };
    assert.deepEqual(tableIn(value), { rows: [{ a: 1 }], columns: ["a"], rest: { total: 1, tags: ["x"] } });
});

test("columns and rows of cells become rows of named values", () => {
    const value = {
        columns: ["city", "people"],
        rows: [
            ["Rome", 3],
            ["Bonn", 1],
        ],
        cut: false,
    };
    assert.deepEqual(tableIn(value), {
        rows: [
            { city: "Rome", people: 3 },
            { city: "Bonn", people: 1 },
        ],
        columns: ["city", "people"],
        rest: { cut: false },
    });
});

test("several numbers are a numbered table, one number is none", () => {
    assert.deepEqual(tableIn([4, 5]).rows, [
        { "#": "1", value: 4 },
        { "#": "2", value: 5 },
    ]);
    assert.equal(tableIn([4]), null);
});

test("nested values, two lists, too many columns, and plain values are no table", () => {
    const wide = Object.fromEntries(Array.from({ length: 13 }, (_, index) => [`c${index}`, index]));
    for (const value of [[{ a: { b: 1 } }], { a: [{ x: 1 }], b: [{ y: 1 }] }, [wide], [], "text", 7, null]) {
        assert.equal(tableIn(value), null, JSON.stringify(value));
    }
});

test("a column is numeric if it has two finite numbers and nothing else but gaps", () => {
    const rows = [
        { a: 1, b: 1, c: "1", d: 1 },
        { a: null, b: "2", c: "2", d: null },
        { a: 3, c: "3" },
    ];
    assert.deepEqual(numericColumns({ rows, columns: ["a", "b", "c", "d"] }), ["a"]);
    assert.deepEqual(numericColumns({ rows: [{ a: 1 }, { a: Number.NaN }], columns: ["a"] }), []);
});

test("a chart needs several rows and numbers of something", () => {
    const table = (...rows) => tableIn(rows);
    assert.equal(isDrawable(table({ city: "Rome", people: 3 }, { city: "Bonn", people: 1 })), true);
    assert.equal(isDrawable(table({ city: "Rome", people: 3 })), false);
    assert.equal(isDrawable(table({ city: "Rome" }, { city: "Bonn" })), false);
    assert.equal(isDrawable(table({ year: 2001, people: 3 }, { year: 2002, people: 1 })), true);
});

test("a cell is written without noise", () => {
    assert.deepEqual([null, undefined, 1234.5678901, 0.1 + 0.2, true, "text"].map(written), [
        "–",
        "–",
        "1234.56789",
        "0.3",
        "true",
        "text",
    ]);
});

test("sound, pictures and tables are shown at once, other replies are not", () => {
    const shown = [
        "data:image/png;base64,AAAA",
        { media_type: "audio/wav", data_base64: "AAAA" },
        { mimeType: "image/png", data: "AAAA" },
        '[{"a": 1}, {"a": 2}]',
    ];
    const hidden = [
        "data:text/html;base64,AAAA",
        { media_type: "text/plain", data_base64: "AAAA" },
        { a: 1 },
        "hi",
    ];
    assert.deepEqual(shown.map(isShowy), [true, true, true, true]);
    assert.deepEqual(hidden.map(isShowy), [false, false, false, false]);
});
