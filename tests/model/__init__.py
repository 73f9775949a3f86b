"""The platform with a small real language model; `make test-model` installs it and runs these tests."""
