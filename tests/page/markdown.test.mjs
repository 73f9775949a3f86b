import "./document.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { html } from "../../agent/beckon_agent/page/app/html.js";
import { Markdown } from "../../agent/beckon_agent/page/app/parts/markdown.js";
import { render } from "../../agent/node_modules/preact/dist/preact.mjs";

function drawn(text) {
    const room = document.createElement("div");
    render(html`<${Markdown} text=${text} />`, room);
    return room.querySelector(".markdown");
}

test("markdown becomes elements, with headings below those of the page", () => {
    const room = drawn("# One\n\n##### Five\n\nSome *text*.\n\n- [x] done\n- [ ] open");
    assert.equal(room.querySelector("h3").textContent, "One");
    assert.equal(room.querySelector("h6").textContent, "Five");
    assert.equal(room.querySelector("em").textContent, "text");
    assert.match(room.querySelector("ul").textContent, /☑ done.*☐ open/s);
    assert.equal(room.querySelector("input"), null);
});

test("scripts, handlers, forms and styles of an answer are removed", () => {
    const room = drawn(
        '<script>hit()</script><p onclick="hit()" style="color:red" class="x" id="y">kept</p>' +
            '<form action="/x"><button>send</button></form><style>p{}</style><svg onload="hit()"></svg>',
    );
    assert.equal(room.querySelector("script, form, button, style, svg"), null);
    assert.equal(room.querySelector("[onclick], [onload], p[style], p[class], p[id]"), null);
    assert.match(room.textContent, /kept/);
});

test("a link opens elsewhere, and one with a script is no link", () => {
    const room = drawn("[good](https://example.org/a) [bad](javascript:hit()) [near](/runs)");
    const links = [...room.querySelectorAll("a[href]")];
    assert.deepEqual(
        links.map((link) => link.getAttribute("href")),
        ["https://example.org/a"],
    );
    assert.equal(links[0].getAttribute("target"), "_blank");
    assert.equal(links[0].getAttribute("rel"), "noopener noreferrer nofollow");
});

test("a picture from elsewhere is not loaded: it becomes a link", () => {
    const room = drawn("![a cat](https://example.org/cat.png) ![dot](data:image/png;base64,AQID)");
    const pictures = [...room.querySelectorAll("img")];
    assert.deepEqual(
        pictures.map((picture) => picture.getAttribute("src")),
        ["data:image/png;base64,AQID"],
    );
    const link = room.querySelector("a");
    assert.equal(link.getAttribute("href"), "https://example.org/cat.png");
    assert.equal(link.textContent, "a cat");
});

test("a block of code has its language, its text as it is, and a button that copies it", () => {
    const room = drawn("```python title=x\nprint('<b>')\n```\n\n```\nplain\n```");
    const [python, plain] = room.querySelectorAll("figure.code");
    assert.equal(python.querySelector("figcaption span").textContent, "python");
    assert.equal(python.querySelector("code").textContent, "print('<b>')");
    assert.equal(python.querySelector("button").getAttribute("aria-label"), "Copy the code");
    assert.equal(plain.querySelector("figcaption span").textContent, "text");
});

test("a table can be scrolled by keyboard", () => {
    const block = drawn("| a | b |\n| --- | --: |\n| 1 | 2 |").querySelector("table").parentElement;
    assert.equal(block.getAttribute("tabindex"), "0");
    assert.equal(block.getAttribute("role"), "region");
    assert.equal(block.querySelectorAll("td")[1].getAttribute("align"), "right");
});

test("a text that grows does not draw its earlier blocks again", () => {
    const room = document.createElement("div");
    render(html`<${Markdown} text=${"First.\n\nSecond"} />`, room);
    const [first, second] = room.querySelectorAll("p");
    render(html`<${Markdown} text=${"First.\n\nSecond, longer"} />`, room);
    const [firstAfter, secondAfter] = room.querySelectorAll("p");
    assert.equal(firstAfter, first);
    assert.notEqual(secondAfter, second);
    assert.equal(secondAfter.textContent, "Second, longer");
});
