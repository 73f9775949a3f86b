// The view Runs: the list, or one run: #/runs, #/runs/ID.
import { html } from "../html.js";
import { RunList } from "../runs/list.js";
import { RunPage } from "../runs/run.js";

/** @import { Route } from "../route.js" */

/** @param {{ route: Route }} props */
export function RunsView({ route }) {
    const [id] = route.parts;
    return id ? html`<${RunPage} key=${id} id=${id} />` : html`<${RunList} />`;
}
