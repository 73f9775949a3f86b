import assert from "node:assert/strict";
import { test } from "node:test";
import { exactNumber, parseJson } from "../../agent/beckon_agent/page/app/exact-json.js";

const LONG = "1".repeat(30);

test("every value but a long integer is what JSON.parse makes of it", () => {
    const text = `{"list":[9007199254740991,-1.5,1e+30,true,null,{}],"word":"${LONG}"}`;
    assert.deepEqual(parseJson(text), JSON.parse(text));
    assert.equal(JSON.stringify(parseJson(text)), text);
    assert.equal(exactNumber("3", 3), 3);
});

test("a long integer has a place in JSON, where a BigInt alone is an error", () => {
    assert.match(JSON.stringify([BigInt(LONG)]), /^\[1[1.]{15,}/);
});
