// JSON whose long integers stay exact: a number of JavaScript would round them. They are values of BigInt,
// which JSON.stringify writes as integers here. A browser without `JSON.rawJSON` rounds them, as JSON.parse does.

const INTEGER = /^-?\d+$/;

Object.defineProperty(BigInt.prototype, "toJSON", {
    value() {
        return JSON.rawJSON?.(String(this)) ?? Number(this);
    },
});

/** @param {string} text */
export function parseJson(text) {
    return JSON.parse(text, (_, value, context) =>
        typeof value === "number" ? exactNumber(context?.source ?? "", value) : value,
    );
}

/**
 * The number that a text is, as a BigInt where it is an integer that a number would round.
 * @param {string} text
 * @param {number} value
 */
export function exactNumber(text, value) {
    const rounded = INTEGER.test(text) && !Number.isSafeInteger(value);
    return rounded && JSON.rawJSON ? BigInt(text) : value;
}
