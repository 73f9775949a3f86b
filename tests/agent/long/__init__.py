"""Tools that take a call and answer later, with every part real but the model."""
