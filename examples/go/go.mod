module beckon.dev/examples/roman

go 1.24
