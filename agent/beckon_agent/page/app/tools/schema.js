// JSON Schema as a form asks it: what kind of field each property is, and what is wrong with a value.

const DEEPEST = 3;

/** The properties of an object schema as fields: { name, required, schema, kind, fields }. */
export function fieldsOf(schema, root = schema, depth = 0) {
    const required = new Set(schema.required ?? []);
    return Object.entries(schema.properties ?? {}).map(([name, given]) => {
        const plain = plainOf(given, root);
        const kind = kindOf(plain, depth);
        const fields = kind === "object" ? fieldsOf(plain, root, depth + 1) : [];
        return { name, required: required.has(name), schema: plain, kind, fields };
    });
}

/** A schema without its reference, and without the alternative of being null. */
function plainOf(schema, root) {
    if (typeof schema !== "object" || schema === null) return {};
    let plain = schema;
    for (let hops = 0; typeof plain.$ref === "string" && hops < 8; hops += 1) {
        const { $ref, ...beside } = plain;
        plain = { ...pointed(root, $ref), ...beside };
    }
    const choices = plain.anyOf ?? plain.oneOf;
    if (Array.isArray(choices)) {
        const others = choices.filter((one) => one?.type !== "null");
        if (others.length === 1) {
            const { anyOf: _, oneOf: __, ...beside } = plain;
            return plainOf({ ...others[0], ...beside }, root);
        }
    }
    if (Array.isArray(plain.type)) {
        const types = plain.type.filter((one) => one !== "null");
        if (types.length === 1) return { ...plain, type: types[0] };
    }
    return plain;
}

function pointed(root, reference) {
    if (!reference.startsWith("#/")) return {};
    const path = reference.slice(2).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    return path.reduce((found, part) => found?.[part], root) ?? {};
}

function kindOf(schema, depth) {
    if (Array.isArray(schema.enum)) return "choice";
    switch (schema.type) {
        case "string": return "text";
        case "integer": return "integer";
        case "number": return "number";
        case "boolean": return "boolean";
        case "object": return schema.properties && depth < DEEPEST ? "object" : "json";
        default: return "json";
    }
}

/** What a model reads of a type: "string", "one of small, large", "list of string". */
export function typeOf(given, root = given) {
    const schema = plainOf(given, root);
    if (Array.isArray(schema.enum)) return `one of ${schema.enum.map((one) => JSON.stringify(one)).join(", ")}`;
    if (schema.type === "array") return `list of ${schema.items ? typeOf(schema.items, root) : "anything"}`;
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    const choices = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(choices)) return choices.map((one) => typeOf(one, root)).join(" or ");
    return Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type ?? "anything";
}

/**
 * From what was written to arguments: { value, problems }, problems by path ("place.city").
 * What is empty and not required is left out.
 */
export function read(fields, written, path = "") {
    const value = {};
    const problems = {};
    for (const field of fields) {
        const here = path ? `${path}.${field.name}` : field.name;
        const found = field.kind === "object" ? readObject(field, written[field.name] ?? {}, here) : readOne(field, written[field.name] ?? "");
        if (found.problems) Object.assign(problems, found.problems);
        if (found.problem) problems[here] = found.problem;
        else if (found.value !== undefined) value[field.name] = found.value;
    }
    return { value, problems };
}

function readObject(field, written, path) {
    if (!field.required && isEmpty(written)) return {};
    return read(field.fields, written, path);
}

function isEmpty(written) {
    return Object.values(written).every((one) => (typeof one === "object" ? isEmpty(one) : one === ""));
}

function readOne(field, text) {
    if (text === "") return field.required ? { problem: "is required" } : {};
    switch (field.kind) {
        case "choice": return { value: field.schema.enum[Number(text)] };
        case "boolean": return { value: text === "true" };
        case "integer":
        case "number": return readNumber(field, text);
        case "json": return readJson(text);
        default: return readText(field.schema, text);
    }
}

function readNumber({ kind, schema }, text) {
    const value = Number(text);
    if (!Number.isFinite(value)) return { problem: "is not a number" };
    if (kind === "integer" && !Number.isInteger(value)) return { problem: "is not a whole number" };
    if (value < schema.minimum) return { problem: `is less than ${schema.minimum}` };
    if (value > schema.maximum) return { problem: `is more than ${schema.maximum}` };
    return { value };
}

function readText(schema, text) {
    const length = [...text].length;
    if (length < schema.minLength) return { problem: `has fewer than ${schema.minLength} characters` };
    if (length > schema.maxLength) return { problem: `has more than ${schema.maxLength} characters` };
    return { value: text };
}

export function readJson(text) {
    try {
        return { value: JSON.parse(text) };
    } catch (error) {
        return { problem: `is not JSON: ${error.message}` };
    }
}
