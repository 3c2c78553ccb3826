// Builds of CPython as a Go module: where uv cannot fetch an interpreter, scripts/ensure-python takes the one in here.
module karpool.sh/tests/pythons

go 1.26

require github.com/kluctl/go-embed-python v0.0.0-3.14.6-20260610-1
