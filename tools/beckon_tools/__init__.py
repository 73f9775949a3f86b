"""The SDK that makes a Python function a tool, and the tools that ship."""
