import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, read, readJson, typeOf } from "../../agent/beckon_agent/page/app/tools/schema.js";

const ORDER = {
    type: "object",
    required: ["item", "place"],
    properties: {
        item: { type: "string", minLength: 2, maxLength: 4 },
        count: { anyOf: [{ type: "integer", minimum: 1, maximum: 9 }, { type: "null" }], default: 1 },
        size: { $ref: "#/$defs/Size", description: "How large" },
        gift: { type: ["boolean", "null"] },
        tags: { type: "array", items: { type: "string" } },
        place: { $ref: "#/$defs/Place" },
    },
    $defs: {
        Size: { enum: ["small", "large"] },
        Place: {
            type: "object",
            required: ["city"],
            properties: { city: { type: "string" }, distance: { type: "number" } },
        },
    },
};
const FIELDS = fieldsOf(ORDER);

test("each property of a schema becomes a field of its kind", () => {
    const kinds = FIELDS.map(({ name, kind, required }) => [name, kind, required]);
    assert.deepEqual(kinds, [
        ["item", "text", true],
        ["count", "integer", false],
        ["size", "choice", false],
        ["gift", "boolean", false],
        ["tags", "json", false],
        ["place", "object", true],
    ]);
    assert.deepEqual(
        FIELDS[5].fields.map(({ name, kind, required }) => [name, kind, required]),
        [
            ["city", "text", true],
            ["distance", "number", false],
        ],
    );
});

test("what is beside a reference or an alternative of null is not lost", () => {
    assert.equal(FIELDS[2].schema.description, "How large");
    assert.deepEqual(FIELDS[1].schema, { type: "integer", minimum: 1, maximum: 9, default: 1 });
});

test("a schema that refers to itself ends, below three levels as JSON", () => {
    const tree = {
        properties: { child: { $ref: "#/$defs/Tree" } },
        $defs: { Tree: { type: "object", properties: { child: { $ref: "#/$defs/Tree" } } } },
    };
    const kinds = [];
    for (let [field] = fieldsOf(tree); field; [field] = field.fields) kinds.push(field.kind);
    assert.deepEqual(kinds, ["object", "object", "object", "json"]);
    assert.equal(fieldsOf({ properties: { loop: { $ref: "#/properties/loop" } } })[0].kind, "json");
});

test("a type is written as a model reads it", () => {
    const written = FIELDS.map((field) => typeOf(field.schema, ORDER));
    assert.deepEqual(written, [
        "string",
        "integer",
        'one of "small", "large"',
        "boolean",
        "list of string",
        "object",
    ]);
    assert.equal(typeOf({ anyOf: [{ type: "string" }, { type: "integer" }] }), "string or integer");
    assert.equal(typeOf({ type: "array" }), "list of anything");
    assert.equal(typeOf({ const: 3 }), "3");
    assert.equal(typeOf(true), "anything");
});

test("what was written becomes arguments, without what is empty", () => {
    const written = {
        item: "tea",
        count: "3",
        size: "1",
        gift: "false",
        tags: '["a"]',
        place: { city: "Rome" },
    };
    assert.deepEqual(read(FIELDS, written), {
        value: { item: "tea", count: 3, size: "large", gift: false, tags: ["a"], place: { city: "Rome" } },
        problems: {},
    });
    assert.deepEqual(read(FIELDS, { item: "tea", place: { city: "Rome" } }).value, {
        item: "tea",
        place: { city: "Rome" },
    });
});

test("each problem is found at the path of its field", () => {
    const written = { item: "x", count: "2.5", tags: "[", place: { distance: "far" } };
    const { problems } = read(FIELDS, written);
    assert.deepEqual(Object.keys(problems), ["item", "count", "tags", "place.city", "place.distance"]);
    assert.equal(problems.item, "has fewer than 2 characters");
    assert.equal(problems.count, "is not a whole number");
    assert.match(problems.tags, /^is not JSON: /);
    assert.equal(problems["place.city"], "is required");
    assert.equal(problems["place.distance"], "is not a number");
});

test("limits are checked as the service would check them", () => {
    const problems = (written) => read(FIELDS, { item: "tea", place: { city: "Rome" }, ...written }).problems;
    assert.deepEqual(problems({ count: "0" }), { count: "is less than 1" });
    assert.deepEqual(problems({ count: "10" }), { count: "is more than 9" });
    assert.deepEqual(problems({ item: "coffee" }), { item: "has more than 4 characters" });
    // Four characters in eight units of UTF-16.
    assert.deepEqual(problems({ item: "😀😀😀😀" }), {});
});

test("an optional object without any value is left out", () => {
    const fields = fieldsOf({
        properties: {
            place: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
        },
    });
    assert.deepEqual(read(fields, { place: { city: "" } }), { value: {}, problems: {} });
    assert.deepEqual(readJson("1"), { value: 1 });
});
