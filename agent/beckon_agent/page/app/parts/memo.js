// A component that is drawn again only where what it shows has changed.
import { Component } from "preact";

export function memo(draw, same) {
    return class extends Component {
        shouldComponentUpdate(next) {
            return !same(this.props, next);
        }

        render(props) {
            return draw(props);
        }
    };
}
