// A document for modules that need one. Import this before them.
import { createRequire } from "node:module";

const { JSDOM } = createRequire(new URL("../../agent/package.json", import.meta.url))("jsdom");

export const page = new JSDOM("<!doctype html><title>Beckon</title>", {
    url: "http://agent.test/",
    pretendToBeVisual: true,
});

const NAMES = ["document", "history", "localStorage", "location", "sessionStorage", "Element", "FileReader"];
globalThis.window = page.window;
for (const name of NAMES) {
    Object.defineProperty(globalThis, name, { get: () => page.window[name], configurable: true });
}
const FUNCTIONS = [
    "addEventListener",
    "cancelAnimationFrame",
    "removeEventListener",
    "requestAnimationFrame",
];
for (const name of FUNCTIONS) {
    globalThis[name] = page.window[name].bind(page.window);
}
// jsdom draws nothing, so nothing has another size later.
globalThis.ResizeObserver = class {
    observe() {
        return undefined;
    }

    disconnect() {
        return undefined;
    }
};
