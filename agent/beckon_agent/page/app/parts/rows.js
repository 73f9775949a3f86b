// Finding the table in a tool's answer: rows of named values, wherever they are in the answer.

/** @typedef {Record<string, unknown>} Row */
/** @typedef {{ rows: Row[], columns: string[], rest: Record<string, unknown> }} TableData */

const MOST_COLUMNS = 12;

/**
 * Returns { rows, columns, rest }, or null: `rest` are the members beside the rows.
 * @param {unknown} value
 * @returns {TableData | null}
 */
export function tableIn(value) {
    if (Array.isArray(value)) return tableOf(value, {});
    if (!isObject(value)) return null;
    if (isGrid(value)) {
        const { columns, rows, ...rest } = value;
        return tableOf(
            rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]]))),
            rest,
        );
    }
    const lists = Object.entries(value).filter(hasRows);
    if (lists.length !== 1) return null;
    const [[name, rows]] = lists;
    const { [name]: _, ...rest } = value;
    return tableOf(rows, rest);
}

/**
 * The columns that hold numbers alone, at least two of them.
 * @param {{ rows: Row[], columns: string[] }} table
 */
export function numericColumns({ rows, columns }) {
    return columns.filter((name) => {
        const values = rows.map((row) => row[name]).filter((one) => one !== null && one !== undefined);
        return values.length > 1 && values.every((one) => typeof one === "number" && Number.isFinite(one));
    });
}

/**
 * @param {unknown[]} list
 * @param {Record<string, unknown>} rest
 * @returns {TableData | null}
 */
function tableOf(list, rest) {
    const isNumbers = list.length > 1 && list.every((one) => typeof one === "number");
    const rows = isNumbers ? list.map((value, index) => ({ "#": String(index + 1), value })) : list;
    if (!isRows(rows)) return null;
    const columns = [...new Set(rows.flatMap(Object.keys))];
    return columns.length > MOST_COLUMNS ? null : { rows, columns, rest };
}

/**
 * @param {[string, unknown]} member
 * @returns {member is [string, Row[]]}
 */
function hasRows(member) {
    return Array.isArray(member[1]) && isRows(member[1]);
}

/**
 * @param {unknown[]} list
 * @returns {list is Row[]}
 */
function isRows(list) {
    return list.length > 0 && list.every((row) => isObject(row) && Object.values(row).every(isFlat));
}

/**
 * @param {Record<string, unknown>} value
 * @returns {value is { columns: string[], rows: unknown[][] }}
 */
function isGrid(value) {
    const { columns, rows } = value;
    return (
        Array.isArray(columns) &&
        Array.isArray(rows) &&
        columns.every((name) => typeof name === "string") &&
        rows.every((row) => Array.isArray(row) && row.length === columns.length)
    );
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
export function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value */
export function isFlat(value) {
    return value === null || typeof value !== "object";
}
