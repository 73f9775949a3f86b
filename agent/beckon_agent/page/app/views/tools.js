// The view Tools: the catalogue, or one of it: #/tools, #/tools/NAME, #/tools/NAMESPACE/EVENTTYPE.
import { html } from "../html.js";
import { ToolList } from "../tools/list.js";
import { ToolPage } from "../tools/tool.js";

/** @import { Route } from "../route.js" */

/** @param {{ route: Route }} props */
export function ToolsView({ route }) {
    return route.parts.length
        ? html`<${ToolPage} key=${route.parts.join("/")} parts=${route.parts} />`
        : html`<${ToolList} />`;
}
