"""`beckon`: the command line, and the local platform that it starts.

The only room that sees all the others. `commands` holds one module a verb,
`local` the platform on this machine: what runs, on which port, from which manifests.
"""
