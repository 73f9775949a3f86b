// JSON Schema as a form: the kind of field of each property, and the problems of its value.
import { exactNumber, parseJson } from "../exact-json.js";

/**
 * A JSON Schema, as far as a form reads it.
 *
 * @typedef {object} Schema
 * @property {string} [$ref]
 * @property {string | string[]} [type]
 * @property {string} [description]
 * @property {string} [format]
 * @property {unknown} [default]
 * @property {unknown} [const]
 * @property {unknown[]} [enum]
 * @property {Schema[]} [anyOf]
 * @property {Schema[]} [oneOf]
 * @property {Schema} [items]
 * @property {Record<string, Schema>} [properties]
 * @property {string[]} [required]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {number} [minLength]
 * @property {number} [maxLength]
 */

/** @typedef {"choice" | "text" | "integer" | "number" | "boolean" | "object" | "json"} Kind */
/** @typedef {{ name: string, required: boolean, schema: Schema, kind: Kind, fields: Field[] }} Field */
/** @typedef {{ [name: string]: string | Written }} Written */
/** @typedef {Record<string, string>} Problems */
/** @typedef {{ value?: unknown, problem?: string, problems?: Problems }} Reading */

const DEEPEST = 3;

/**
 * The properties of an object schema as fields: { name, required, schema, kind, fields }.
 * @param {Schema} schema
 * @param {Schema} [root]
 * @param {number} [depth]
 * @returns {Field[]}
 */
export function fieldsOf(schema, root = schema, depth = 0) {
    const required = new Set(schema.required ?? []);
    return Object.entries(schema.properties ?? {}).map(([name, given]) => {
        const plain = plainOf(given, root);
        const kind = kindOf(plain, depth);
        const fields = kind === "object" ? fieldsOf(plain, root, depth + 1) : [];
        return { name, required: required.has(name), schema: plain, kind, fields };
    });
}

/**
 * A schema without its reference, and without the alternative of being null.
 * @param {Schema | boolean | null | undefined} schema
 * @param {Schema | boolean} root
 * @returns {Schema}
 */
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

/**
 * @param {Schema | boolean} root
 * @param {string} reference
 * @returns {Schema}
 */
function pointed(root, reference) {
    if (!reference.startsWith("#/")) return {};
    const path = reference
        .slice(2)
        .split("/")
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    /** @type {unknown} */
    let found = root;
    for (const part of path) found = hasMembers(found) ? found[part] : undefined;
    return hasMembers(found) ? found : {};
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function hasMembers(value) {
    return typeof value === "object" && value !== null;
}

/**
 * @param {Schema} schema
 * @param {number} depth
 * @returns {Kind}
 */
function kindOf(schema, depth) {
    if (Array.isArray(schema.enum)) return "choice";
    switch (schema.type) {
        case "string":
            return "text";
        case "integer":
            return "integer";
        case "number":
            return "number";
        case "boolean":
            return "boolean";
        case "object":
            return schema.properties && depth < DEEPEST ? "object" : "json";
        default:
            return "json";
    }
}

/**
 * What a model reads of a type: "string", "one of small, large", "list of string".
 * @param {Schema | boolean} given
 * @param {Schema | boolean} [root]
 * @returns {string}
 */
export function typeOf(given, root = given) {
    const schema = plainOf(given, root);
    if (Array.isArray(schema.enum))
        return `one of ${schema.enum.map((one) => JSON.stringify(one)).join(", ")}`;
    if (schema.type === "array") return `list of ${schema.items ? typeOf(schema.items, root) : "anything"}`;
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    const choices = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(choices)) return choices.map((one) => typeOf(one, root)).join(" or ");
    return Array.isArray(schema.type) ? schema.type.join(" or ") : (schema.type ?? "anything");
}

/**
 * From what was written to arguments: { value, problems }, problems by path ("place.city").
 * What is empty and not required is left out.
 * @param {Field[]} fields
 * @param {Written} written
 * @param {string} [path]
 */
export function read(fields, written, path = "") {
    /** @type {Record<string, unknown>} */
    const value = {};
    /** @type {Problems} */
    const problems = {};
    for (const field of fields) {
        const here = path ? `${path}.${field.name}` : field.name;
        const found =
            field.kind === "object"
                ? readObject(field, groupOf(written[field.name]), here)
                : readOne(field, textOf(written[field.name]));
        if (found.problems) Object.assign(problems, found.problems);
        if (found.problem) problems[here] = found.problem;
        else if (found.value !== undefined) value[field.name] = found.value;
    }
    return { value, problems };
}

/** @param {string | Written | undefined} value */
const textOf = (value) => (typeof value === "string" ? value : "");

/** @param {string | Written | undefined} value */
const groupOf = (value) => (typeof value === "object" ? value : {});

/**
 * @param {Field} field
 * @param {Written} written
 * @param {string} path
 * @returns {Reading}
 */
function readObject(field, written, path) {
    if (!field.required && isEmpty(written)) return {};
    return read(field.fields, written, path);
}

/**
 * @param {Written} written
 * @returns {boolean}
 */
function isEmpty(written) {
    return Object.values(written).every((one) => (typeof one === "object" ? isEmpty(one) : one === ""));
}

/**
 * @param {Field} field
 * @param {string} text
 * @returns {Reading}
 */
function readOne(field, text) {
    if (text === "") return field.required ? { problem: "is required" } : {};
    switch (field.kind) {
        case "choice":
            return { value: field.schema.enum?.[Number(text)] };
        case "boolean":
            return { value: text === "true" };
        case "integer":
        case "number":
            return readNumber(field, text);
        case "json":
            return readJson(text);
        default:
            return readText(field.schema, text);
    }
}

/**
 * @param {Field} field
 * @param {string} text
 * @returns {Reading}
 */
function readNumber({ kind, schema }, text) {
    const value = Number(text);
    if (!Number.isFinite(value)) return { problem: "is not a number" };
    if (kind === "integer" && !Number.isInteger(value)) return { problem: "is not a whole number" };
    if (schema.minimum !== undefined && value < schema.minimum)
        return { problem: `is less than ${schema.minimum}` };
    if (schema.maximum !== undefined && value > schema.maximum)
        return { problem: `is more than ${schema.maximum}` };
    return { value: exactNumber(text.trim(), value) };
}

/**
 * @param {Schema} schema
 * @param {string} text
 * @returns {Reading}
 */
function readText({ minLength, maxLength }, text) {
    const length = [...text].length;
    if (minLength !== undefined && length < minLength)
        return { problem: `has fewer than ${minLength} characters` };
    if (maxLength !== undefined && length > maxLength)
        return { problem: `has more than ${maxLength} characters` };
    return { value: text };
}

/**
 * @param {string} text
 * @returns {Reading}
 */
export function readJson(text) {
    try {
        return { value: parseJson(text) };
    } catch (error) {
        return { problem: `is not JSON: ${error instanceof Error ? error.message : error}` };
    }
}
