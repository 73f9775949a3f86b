"""The agent without a cluster: tools and Agents as folders of manifests have them."""
