// Finding the table in a tool's answer: rows of named values, wherever the answer keeps them.

const MOST_COLUMNS = 12;

/** Returns { rows, columns, rest }, or null: `rest` are the members beside the rows. */
export function tableIn(value) {
    if (Array.isArray(value)) return tableOf(value, {});
    if (!isObject(value)) return null;
    if (isGrid(value)) {
        const { columns, rows, ...rest } = value;
        return tableOf(rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))), rest);
    }
    const lists = Object.entries(value).filter(([, member]) => Array.isArray(member) && isRows(member));
    if (lists.length !== 1) return null;
    const [[name, rows]] = lists;
    const { [name]: _, ...rest } = value;
    return tableOf(rows, rest);
}

/** The columns that hold numbers alone, at least two of them. */
export function numericColumns({ rows, columns }) {
    return columns.filter((name) => {
        const values = rows.map((row) => row[name]).filter((one) => one !== null && one !== undefined);
        return values.length > 1 && values.every((one) => typeof one === "number" && Number.isFinite(one));
    });
}

function tableOf(rows, rest) {
    if (rows.length > 1 && rows.every((one) => typeof one === "number")) {
        rows = rows.map((value, index) => ({ "#": String(index + 1), value }));
    }
    if (!isRows(rows)) return null;
    const columns = [...new Set(rows.flatMap(Object.keys))];
    return columns.length > MOST_COLUMNS ? null : { rows, columns, rest };
}

function isRows(list) {
    return list.length > 0 && list.every((row) => isObject(row) && Object.values(row).every(isFlat));
}

function isGrid({ columns, rows }) {
    return Array.isArray(columns) && Array.isArray(rows) && columns.every((name) => typeof name === "string")
        && rows.every((row) => Array.isArray(row) && row.length === columns.length);
}

export function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isFlat(value) {
    return value === null || typeof value !== "object";
}
