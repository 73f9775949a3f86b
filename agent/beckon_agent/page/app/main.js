// The page: draws the shell into the document.
import { render } from "preact";
import { html } from "./html.js";
import { Shell } from "./shell.js";

const root = document.getElementById("root");
if (root) render(html`<${Shell} />`, root);
