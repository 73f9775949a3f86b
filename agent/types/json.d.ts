// What browsers have of "JSON.parse source text access", which TypeScript's library does not know yet.

interface JSON {
    // biome-ignore lint/suspicious/noExplicitAny: as in TypeScript's library
    parse(text: string, reviver: (key: string, value: unknown, context?: { source?: string }) => unknown): any;
    rawJSON?(text: string): object;
}
